package v1alpha1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Defaults returns the configuration of an empty file. It is not valid: the paths of the
// certificates have no default.
func Defaults() *ServerConfiguration {
	milliseconds := func(n time.Duration) metav1.Duration { return metav1.Duration{Duration: n * time.Millisecond} }
	seconds := func(n time.Duration) metav1.Duration { return milliseconds(n * 1000) }
	return &ServerConfiguration{
		TypeMeta: metav1.TypeMeta{APIVersion: APIVersion, Kind: Kind},
		Cluster:  Cluster{MaxStaleness: seconds(120)},
		Webhook: Webhook{
			Address:              ":8443",
			Serves:               []Served{ServeAuthorization, ServeAdmission},
			ClientAuthentication: ClientCertificateRequired,
			// The object and the old object of an admission review may each have the 3
			// MiB that an API server accepts in one request. The API server escapes some
			// characters with six bytes.
			MaxBodyBytes: maxBodyBytes,
		},
		Bootstrap: Bootstrap{
			ClientCommonName:   "node-authorizer-client",
			CertificateWait:    seconds(3600),
			RequestTimeout:     seconds(15),
			MaxBodyBytes:       64 << 10,
			Reattestation:      NeverReattest,
			VerifyRegistration: true,
			Token:              Token{TTL: seconds(300)},
			RateLimit:          RateLimit{PerSecond: 50, Burst: 200, PerSource: SourceLimit{PerSecond: 1, Burst: 10}},
			AWS: AWS{
				ClusterTag: "KubernetesCluster", VerifySignature: true, VerifySourceAddress: true, Naming: PrivateDNSNaming,
			},
			OIDC:     OIDC{MaxAge: seconds(300)},
			Approval: RegisteredApproval,
			Exec:     Exec{Timeout: seconds(10), MaxConcurrent: 8},
		},
		Approver: Approver{
			UnattestedNodes: DenyUnattested, ServingAddresses: LedgerAddresses,
			LeaderElection: LeaderElection{
				Namespace: "kube-system", Name: "node-authorizer-approver",
				LeaseDuration: seconds(15), RenewDeadline: seconds(10), RetryPeriod: seconds(2),
			},
		},
		Metrics: Metrics{Address: ":8081"},
		Authorization: Authorization{
			Mode:          NodeMode,
			FreshnessWait: milliseconds(250),
		},
		Admission: Admission{
			FreshnessWait: milliseconds(250),
			AccessReviews: AccessReviews{AllowedTTL: seconds(10), DeniedTTL: seconds(10)},
		},
		Containment: Containment{NodeScopes: Disabled, Quarantines: Disabled, MaxQuarantinedNodes: "10%"},
		IAM: IAM{
			Partition: "aws", Sources: []MappingSource{ConfigMapSource},
			ConfigMap: ConfigMapName{Namespace: "kube-system", Name: "aws-auth"},
			RolePaths: MatchRoleName, SessionCheck: InstanceProfileCheck,
			Reserved: Reserved{
				Prefixes: []string{"system:"}, GrantedUsernames: []string{"system:node:"},
				GrantedGroups: []string{"system:bootstrappers", "system:nodes", "system:node-proxier", "system:masters"},
			},
			STS: STS{Timeout: seconds(10), MaxInFlight: 100, PerSecond: 200, Burst: 400, CacheTTL: seconds(60), CacheSize: 10_000},
			EC2: EC2{CacheTTL: seconds(120), CacheSize: 20_000, PerSecond: 10, Burst: 20},
		},
		Log:      Log{Format: TextLog, Refusals: Refusals{PerSecond: 10, Burst: 100}},
		Shutdown: Shutdown{Timeout: seconds(20)},
	}
}
