package tributary.services;

import io.apicurio.common.apps.config.DynamicConfigPropertyList;
import java.util.List;
import javax.enterprise.context.ApplicationScoped;
import javax.enterprise.inject.Produces;

/** Stands in for a Quarkus extension that is not to be had: it would list the settings that can be changed while the registry runs. */
public class NoDynamicSettings {
    @Produces
    @ApplicationScoped
    DynamicConfigPropertyList settings() {
        return new DynamicConfigPropertyList(List.of());
    }
}
