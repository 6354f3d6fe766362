package v1alpha1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Defaults returns the configuration of a file that sets nothing. It is not
// valid: the paths of the certificates have no default.
func Defaults() *ServerConfiguration {
	milliseconds := func(n time.Duration) metav1.Duration { return metav1.Duration{Duration: n * time.Millisecond} }
	return &ServerConfiguration{
		TypeMeta: metav1.TypeMeta{APIVersion: APIVersion, Kind: Kind},
		Webhook: Webhook{
			Address:              ":8443",
			ClientAuthentication: ClientCertificateRequired,
			// The object and the old object of an admission review may each come
			// from the 3 MiB that an API server takes in one request, in which it
			// writes some characters with six bytes.
			MaxBodyBytes: maxBodyBytes,
		},
		Metrics: Metrics{Address: ":8081"},
		Authorization: Authorization{
			Mode:          NodeMode,
			FreshnessWait: milliseconds(250),
		},
		Admission: Admission{
			FreshnessWait: milliseconds(250),
			AccessReviews: AccessReviews{AllowedTTL: milliseconds(10_000), DeniedTTL: milliseconds(10_000)},
		},
		Log:      Log{Format: TextLog, Refusals: Refusals{PerSecond: 10, Burst: 100}},
		Shutdown: Shutdown{Timeout: milliseconds(20_000)},
	}
}
