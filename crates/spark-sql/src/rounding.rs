//! Rounding of doubles in the *decimal* form of the number, so that 2.675 to two digits is 2.68, though the double lies a little
//! below.

/// Rounds the shortest decimal form that reads back as the number to so many digits behind the point (before it, where they are
/// negative): halves away from zero, or to the even neighbour.
pub(crate) fn round(number: f64, places: i32, even: bool) -> f64 {
    if !number.is_finite() {
        return number;
    }
    let scientific = format!("{:e}", number.abs());
    let Some((mantissa, exponent)) = scientific.split_once('e') else { return number };
    let digits: Vec<u8> = mantissa.bytes().filter(u8::is_ascii_digit).map(|digit| digit - b'0').collect();
    let Ok(exponent) = exponent.parse::<i32>() else { return number };
    // digits of the number that stay
    let kept = i64::from(exponent) + 1 + i64::from(places);
    let Ok(kept) = usize::try_from(kept) else { return 0.0_f64.copysign(number) };
    let Some(next) = digits.get(kept) else { return number };
    let tie = *next == 5 && digits[kept + 1..].iter().all(|digit| *digit == 0);
    let odd = kept.checked_sub(1).and_then(|last| digits.get(last)).is_some_and(|digit| digit % 2 == 1);
    let mut told = vec![0];
    told.extend(&digits[..kept]);
    if *next >= 5 && !(tie && even && !odd) {
        increment(&mut told);
    }
    let told: String = told.iter().map(|digit| char::from(b'0' + digit)).collect();
    // digits with an exponent are a number
    let magnitude = format!("{told}e{}", -i64::from(places)).parse::<f64>().unwrap_or(number.abs());
    magnitude.copysign(number)
}

/// Adds one to a number of decimal digits that begins with a zero.
fn increment(digits: &mut [u8]) {
    for digit in digits.iter_mut().rev() {
        if *digit < 9 {
            *digit += 1;
            return;
        }
        *digit = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::round;

    #[test]
    fn halves_go_away_from_zero_in_the_decimal_form() {
        for (number, digits, rounded) in [
            (2.675, 2, 2.68),
            (0.285, 2, 0.29),
            (-2.5, 0, -3.0),
            (2.4, 0, 2.0),
            (9.995, 2, 10.0),
            (0.05, 1, 0.1),
            (0.04, 1, 0.0),
            (123.0, 2, 123.0),
            (1e300, 2, 1e300),
            (1e-300, 2, 0.0),
            (1250.0, -2, 1300.0),
            (49.0, -2, 0.0),
        ] {
            assert_eq!(round(number, digits, false), rounded, "{number} to {digits}");
        }
        assert_eq!((round(2.5, 0, true), round(3.5, 0, true), round(1250.0, -2, true)), (2.0, 4.0, 1200.0));
        assert!(round(f64::NAN, 1, false).is_nan());
        assert_eq!(round(f64::INFINITY, 1, false), f64::INFINITY);
    }

    proptest::proptest! {
        #[test]
        fn a_rounded_number_is_near_and_stays_when_rounded_again(number in -1e9..1e9_f64, digits in 0_i32..6) {
            let once = round(number, digits, false);
            let half = 0.5 * 10_f64.powi(-digits);
            proptest::prop_assert!((once - number).abs() <= half + number.abs() * 2.0 * f64::EPSILON);
            proptest::prop_assert_eq!(round(once, digits, false), once);
        }
    }
}
