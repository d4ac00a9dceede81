-- The latest profile of each user; an update of the type delete deletes it.
CREATE OR REFRESH STREAMING TABLE silver.user_profile
COMMENT 'Profiles as they are now'
TBLPROPERTIES ('tributary.nullKeys' = 'quarantine');

CREATE FLOW user_profile AS AUTO CDC INTO silver.user_profile
FROM (
  SELECT
    value:user_id::BIGINT AS user_id,
    value:update_type::STRING AS update_type,
    to_date(value:dob::STRING, 'MM/dd/yyyy') AS dob,
    value:sex::STRING AS sex,
    value:gender::STRING AS gender,
    value:first_name::STRING AS first_name,
    value:last_name::STRING AS last_name,
    value:address.street_address::STRING AS street_address,
    value:address.city::STRING AS city,
    value:address.state::STRING AS state,
    value:address.zip::INT AS zip,
    CAST(value:timestamp::DOUBLE AS TIMESTAMP) AS updated
  FROM STREAM(bronze.kafka_multiplex_bz)
  WHERE topic = 'user_info'
)
KEYS (user_id)
APPLY AS DELETE WHEN update_type = 'delete'
SEQUENCE BY updated
COLUMNS * EXCEPT (update_type)
STORED AS SCD TYPE 1;
