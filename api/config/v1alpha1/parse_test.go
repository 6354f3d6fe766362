package v1alpha1

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const head = "apiVersion: " + APIVersion + "\nkind: " + Kind + "\n"

// minimal is the shortest valid file.
const minimal = head + "webhook: {certificateFile: tls.crt, keyFile: tls.key, clientCAFile: ca.crt, allowedClientNames: [kube-apiserver]}\n"

// filled returns Document with the required fields of webhook, which come first.
func filled() string {
	file := Document()
	for empty, value := range map[string]string{
		`certificateFile: ""`: "certificateFile: tls.crt", `keyFile: ""`: "keyFile: tls.key", `clientCAFile: ""`: "clientCAFile: ca.crt",
		"allowedClientNames: []": "allowedClientNames: [kube-apiserver]",
	} {
		file = strings.Replace(file, empty, value, 1)
	}
	return file
}

func parse(t *testing.T, file string) *ServerConfiguration {
	t.Helper()
	config, err := Parse([]byte(file))
	if err != nil {
		t.Fatal(err)
	}
	return config
}

func TestDocumentHasTheDefaults(t *testing.T) {
	document, short := parse(t, filled()), parse(t, minimal)
	if !reflect.DeepEqual(document, short) {
		t.Errorf("the document says\n%+v\nthe defaults are\n%+v", document, short)
	}
}

func TestDocumentExplainsEveryField(t *testing.T) {
	var walk func(of reflect.Type, path string)
	walk = func(of reflect.Type, path string) {
		for i := range of.NumField() {
			f := of.Field(i)
			if f.Anonymous {
				continue
			}
			name := jsonName(f)
			if !strings.Contains(Document(), "\n"+strings.Repeat("  ", strings.Count(path, "."))+name+":") {
				t.Errorf("the document lacks %s%s", path, name)
			}
			if f.Type.Kind() == reflect.Struct && f.Type != reflect.TypeFor[metav1.Duration]() {
				walk(f.Type, path+name+".")
			}
		}
	}
	walk(reflect.TypeFor[ServerConfiguration](), "")
}

func TestEveryFieldIsRead(t *testing.T) {
	const file = head + `
cluster:
  kubeconfig: admin.conf
  kubernetesVersion: "1.36"
  featureGates: {PodCertificateRequest: true, CSIVolumeHealth: false}
  maxStaleness: 5m
webhook:
  address: 127.0.0.1:1
  serves: [Authentication, Authorization]
  certificateFile: c
  keyFile: k
  clientAuthentication: Required
  clientCAFile: ca
  allowedClientNames: [kube-apiserver, front-proxy]
  maxBodyBytes: 4096
bootstrap:
  address: ":10443"
  certificateFile: bc
  keyFile: bk
  clientCAFile: bca
  clientCommonName: machine
  certificateWait: 5m
  attestor: key
  acceptAlwaysAllow: true
  requestTimeout: 20s
  maxBodyBytes: 2048
  reattestation: NodeAbsent
  verifyRegistration: false
  token: {ttl: 10m}
  rateLimit: {perSecond: 7, burst: 8, perSource: {perSecond: 2, burst: 3}}
  aws:
    clusterName: shop.example.com
    clusterTag: cluster
    accounts: ["123456789012", "210987654321"]
    regions: [eu-west-1, us-gov-west-1]
    vpcs: [vpc-0a1b2c3d]
    verifySignature: false
    verifySourceAddress: false
    instanceProfiles: [workers]
    naming: "{{.InstanceID}}.shop"
    certificatesFile: aws.pem
    callerIdentity: {required: true, endpoint: "https://sts.eu-west-1.amazonaws.com"}
  oidc:
    preset: Google
    google: {projects: [shop-prod-1], zones: [europe-west1-b]}
    issuerURL: https://issuer.example.com
    keysFile: keys.json
    certificateAuthorityFile: issuer.pem
    clusterID: shop
    audiences: [nodes]
    maxAge: 2m
    conditions: [{expression: "claims.a", message: "b"}]
    nodeName: claims.name
    instanceID: claims.id
  approval: Manual
  key: {clusterID: shop, certificateAuthorityFile: machines.pem}
  tpm:
    certificateAuthorities: vendors
    rejectExpiredCertificates: true
    nodeName: "tpm-{{.EKHash}}"
    policies:
    - {name: image, pcrs: [{pcr: 7, values: ["abababababababababababababababababababababababababababababababab"]}],
               secureBoot: true, events: [{pcr: 4, values: ["cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd"]}]}
  exec:
    provider: other
    command: [/usr/local/bin/attest, all]
    environment: [A=b, C]
    timeout: 3s
    maxConcurrent: 2
approver:
  enabled: true
  unattestedNodes: Leave
  servingAddresses: LedgerAndNode
  servingCertificates:
  - {names: ["{{.NodeName}}", "{{ .NodeName }}.example.com"], networks: [10.0.0.0/16, "fd00:1::/64"], dns: true}
  - {nodeAddresses: true}
  - {machine: true}
  leaderElection: {namespace: nodes, name: approver, leaseDuration: 30s, renewDeadline: 20s, retryPeriod: 3s}
metrics: {address: ""}
authorization: {mode: Chain, configFile: chain.yaml, freshnessWait: 1s}
admission: {freshnessWait: 0s, accessReviews: {allowedTTL: 1m30s, deniedTTL: 0s}}
containment: {nodeScopes: Enabled, quarantines: Enabled, maxQuarantinedNodes: 3}
iam:
  clusterID: shop
  partition: aws-us-gov
  region: us-gov-west-1
  audiences: ["https://kubernetes.default.svc"]
  sources: [IdentityMapping, File, ConfigMap]
  file: mappings.yaml
  configMap: {namespace: nodes, name: who}
  rolePaths: Exact
  sessionCheck: Instance
  sessionCheckExemptRoles: ["arn:aws-us-gov:iam::111122223333:role/fargate"]
  reserved: {prefixes: ["system:", "eks:"], grantedUsernames: [], grantedGroups: [system:nodes]}
  sts:
    extraHosts: [{host: vpce-1.sts.us-gov-west-1.vpce.amazonaws.com, region: us-gov-west-1}]
    timeout: 5s
    maxInFlight: 7
    perSecond: 8
    burst: 9
    cacheTTL: 30s
    cacheSize: 10
  ec2: {cacheTTL: 3m, cacheSize: 11, perSecond: 12, burst: 13, vpcs: [vpc-0a1b2c3d4e5f60718]}
log: {format: json, verbosity: 4, refusals: {verbosity: 2, perSecond: 3, burst: 5}}
shutdown: {delay: 5s, timeout: 1m}
`
	seconds := func(n time.Duration) metav1.Duration { return metav1.Duration{Duration: n * time.Second} }
	want := &ServerConfiguration{
		TypeMeta: metav1.TypeMeta{APIVersion: APIVersion, Kind: Kind},
		Cluster: Cluster{
			Kubeconfig: "admin.conf", KubernetesVersion: "1.36",
			FeatureGates: map[string]bool{"PodCertificateRequest": true, "CSIVolumeHealth": false},
			MaxStaleness: seconds(300),
		},
		Webhook: Webhook{
			Address: "127.0.0.1:1", Serves: []Served{
				ServeAuthentication, ServeAuthorization,
			}, CertificateFile: "c", KeyFile: "k", ClientAuthentication: ClientCertificateRequired,
			ClientCAFile: "ca", AllowedClientNames: []string{"kube-apiserver", "front-proxy"}, MaxBodyBytes: 4096,
		},
		Bootstrap: Bootstrap{
			Address: ":10443", CertificateFile: "bc", KeyFile: "bk", ClientCAFile: "bca", ClientCommonName: "machine",
			CertificateWait: seconds(300), Attestor: KeyAttestor, AcceptAlwaysAllow: true, RequestTimeout: seconds(20),
			MaxBodyBytes: 2048, Reattestation: ReattestNodeAbsent, Token: Token{TTL: seconds(600)},
			RateLimit: RateLimit{PerSecond: 7, Burst: 8, PerSource: SourceLimit{PerSecond: 2, Burst: 3}},
			AWS: AWS{
				ClusterName: "shop.example.com", ClusterTag: "cluster", Accounts: []string{"123456789012", "210987654321"},
				Regions: []string{"eu-west-1", "us-gov-west-1"}, VPCs: []string{"vpc-0a1b2c3d"}, InstanceProfiles: []string{"workers"},
				Naming: "{{.InstanceID}}.shop", CertificatesFile: "aws.pem",
				CallerIdentity: CallerIdentity{Required: true, Endpoint: "https://sts.eu-west-1.amazonaws.com"},
			},
			OIDC: OIDC{
				Preset: GooglePreset, Google: GoogleInstances{Projects: []string{"shop-prod-1"}, Zones: []string{"europe-west1-b"}},
				IssuerURL: "https://issuer.example.com", KeysFile: "keys.json", CertificateAuthorityFile: "issuer.pem", ClusterID: "shop",
				Audiences: []string{"nodes"}, MaxAge: seconds(120), Conditions: []OIDCCondition{{Expression: "claims.a", Message: "b"}},
				NodeName: "claims.name", InstanceID: "claims.id",
			},
			Approval: ManualApproval, Key: Key{ClusterID: "shop", CertificateAuthorityFile: "machines.pem"},
			TPM: TPM{
				CertificateAuthorities: "vendors", RejectExpiredCertificates: true, NodeName: "tpm-{{.EKHash}}",
				Policies: []TPMPolicy{{
					Name: "image", PCRs: []PCRValues{{PCR: 7, Values: []string{strings.Repeat("ab", 32)}}}, SecureBoot: true,
					Events: []PCRValues{{PCR: 4, Values: []string{strings.Repeat("cd", 32)}}},
				}},
			},
			Exec: Exec{
				Provider: "other", Command: []string{"/usr/local/bin/attest", "all"}, Environment: []string{"A=b", "C"},
				Timeout: seconds(3), MaxConcurrent: 2,
			},
		},
		Approver: Approver{
			Enabled: true, UnattestedNodes: LeaveUnattested, ServingAddresses: LedgerAndNodeAddresses,
			ServingCertificates: []ServingSource{
				{
					Names: []string{"{{.NodeName}}", "{{ .NodeName }}.example.com"}, Networks: []string{"10.0.0.0/16", "fd00:1::/64"},
					DNS: true,
				},
				{NodeAddresses: true},
				{Machine: true},
			},
			LeaderElection: LeaderElection{
				Namespace: "nodes", Name: "approver", LeaseDuration: seconds(30), RenewDeadline: seconds(20), RetryPeriod: seconds(3),
			},
		},
		Authorization: Authorization{Mode: ChainMode, ConfigFile: "chain.yaml", FreshnessWait: seconds(1)},
		Admission:     Admission{AccessReviews: AccessReviews{AllowedTTL: seconds(90)}},
		Containment:   Containment{NodeScopes: Enabled, Quarantines: Enabled, MaxQuarantinedNodes: "3"},
		IAM: IAM{
			ClusterID: "shop", Partition: "aws-us-gov", Region: "us-gov-west-1", Audiences: []string{"https://kubernetes.default.svc"},
			Sources: []MappingSource{IdentityMappingSource, FileSource, ConfigMapSource}, File: "mappings.yaml",
			ConfigMap: ConfigMapName{Namespace: "nodes", Name: "who"}, RolePaths: ExactRolePath, SessionCheck: InstanceCheck,
			SessionCheckExemptRoles: []string{"arn:aws-us-gov:iam::111122223333:role/fargate"},
			Reserved: Reserved{
				Prefixes: []string{"system:", "eks:"}, GrantedUsernames: []string{}, GrantedGroups: []string{"system:nodes"},
			},
			STS: STS{
				ExtraHosts: []STSHost{{Host: "vpce-1.sts.us-gov-west-1.vpce.amazonaws.com", Region: "us-gov-west-1"}},
				Timeout:    seconds(5), MaxInFlight: 7, PerSecond: 8, Burst: 9, CacheTTL: seconds(30), CacheSize: 10,
			},
			EC2: EC2{CacheTTL: seconds(180), CacheSize: 11, PerSecond: 12, Burst: 13, VPCs: []string{"vpc-0a1b2c3d4e5f60718"}},
		},
		Log:      Log{Format: JSONLog, Verbosity: 4, Refusals: Refusals{Verbosity: 2, PerSecond: 3, Burst: 5}},
		Shutdown: Shutdown{Delay: seconds(5), Timeout: seconds(60)},
	}
	if got := parse(t, file); !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
}

func TestJSONIsAccepted(t *testing.T) {
	text, err := json.Marshal(parse(t, minimal))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := parse(t, string(text)), parse(t, minimal); !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
}

func TestNullKeepsTheDefault(t *testing.T) {
	got := parse(t, minimal+"metrics: null\nlog: {refusals: {burst: }}\nauthorization:\n  freshnessWait: ~\n")
	if want := parse(t, minimal); !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
}

func TestListReplacesTheDefault(t *testing.T) {
	got := parse(t, minimal+"iam: {sources: [File], reserved: {prefixes: []}}\n")
	if !reflect.DeepEqual(got.IAM.Sources, []MappingSource{FileSource}) || got.IAM.Reserved.Prefixes == nil ||
		len(got.IAM.Reserved.Prefixes) > 0 {
		t.Errorf("got %+v", got.IAM)
	}
}

// TestWhoMayCallIsSaid: no set of callers follows from a field that is missing.
func TestWhoMayCallIsSaid(t *testing.T) {
	const (
		authorities, names = "clientCAFile: ca", "allowedClientNames: [kube-apiserver]"
		required, anyName  = "clientAuthentication: Required", "clientAuthentication: AnyCertificate"
		none, noNames      = "clientAuthentication: None", "allowedClientNames: []"
		join               = `address: ""`
	)
	for _, tc := range []struct {
		rule    string
		webhook []string
		wrong   []string // the fields
	}{
		{"names are required", []string{authorities}, []string{"webhook.allowedClientNames"}},
		{"an empty list names nobody", []string{authorities, noNames}, []string{"webhook.allowedClientNames"}},
		{"also with the default written down", []string{authorities, required}, []string{"webhook.allowedClientNames"}},
		{"a server of tokens needs them too", []string{authorities, "serves: [Authentication]"}, []string{"webhook.allowedClientNames"}},
		{"names", []string{authorities, names}, nil},
		{"any certificate", []string{authorities, anyName}, nil},
		{"any certificate, and no names", []string{authorities, anyName, noNames}, nil},
		{"any certificate, and names", []string{authorities, anyName, names}, []string{"webhook.allowedClientNames"}},
		{"any certificate of no authority", []string{anyName}, []string{"webhook.clientCAFile"}},
		{"no certificate", []string{none}, nil},
		{"no certificate, and names", []string{none, names}, []string{"webhook.allowedClientNames"}},
		{"no certificate, and authorities", []string{none, authorities}, []string{"webhook.clientCAFile"}},
		{"no webhooks have no callers", []string{join}, nil},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			_, err := Parse([]byte(head + "webhook: {certificateFile: c, keyFile: k, " + strings.Join(tc.webhook, ", ") +
				"}\napprover: {enabled: true}\n"))
			var problems Problems
			errors.As(err, &problems)
			var wrong []string
			for _, p := range problems {
				if strings.HasPrefix(p.Field, "webhook.") {
					wrong = append(wrong, p.Field)
				}
			}
			if !slices.Equal(wrong, tc.wrong) {
				t.Errorf("got %v, want problems in %v", err, tc.wrong)
			}
		})
	}
}

func TestEachPartCanRunAlone(t *testing.T) {
	const machines = `bootstrap: {address: ":10443", certificateFile: c, keyFile: k, attestor: aws, aws: {clusterName: shop}}` + "\n"
	for rule, file := range map[string]string{
		"webhooks":     minimal,
		"bootstrap":    head + `webhook: {address: ""}` + "\n" + machines,
		"the approver": head + `webhook: {address: ""}` + "\napprover: {enabled: true}\n",
		"authentication": head + "webhook: {serves: [Authentication], certificateFile: c, keyFile: k, clientCAFile: ca, " +
			"allowedClientNames: [kube-apiserver]}\niam: {clusterID: shop}\n",
		"all together": minimal + machines + "approver: {enabled: true}\n",
		"sections not in use": head + `webhook: {address: "", certificateFile: c}` + "\n" + machines +
			"approver: {unattestedNodes: Never}\n",
	} {
		if _, err := Parse([]byte(file)); err != nil {
			t.Errorf("%s: %v", rule, err)
		}
	}
}

func TestAlwaysAllowMustBeAccepted(t *testing.T) {
	const file = head + `webhook: {address: ""}` + "\n" +
		`bootstrap: {address: ":10443", certificateFile: c, keyFile: k, attestor: alwaysallow`
	if _, err := Parse([]byte(file + "}")); err == nil || !strings.Contains(err.Error(), "bootstrap.acceptAlwaysAllow: required") {
		t.Errorf("got %v", err)
	}
	parse(t, file+", acceptAlwaysAllow: true}")
}

func TestSamePortOnOtherAddressIsValid(t *testing.T) {
	parse(t, minimal+"metrics: {address: '127.0.0.1:8443'}")
}

// TestMistakes compares the problems in testdata/invalid/FILE with FILE.golden.
func TestMistakes(t *testing.T) {
	files, err := filepath.Glob("testdata/invalid/*.[yj]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if filepath.Ext(file) == ".golden" {
			continue
		}
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			config, err := Parse(text)
			if problems := (Problems{}); config != nil || !errors.As(err, &problems) || len(problems) == 0 {
				t.Fatalf("got %v, error %v; want problems", config, err)
			}
			compareGolden(t, file+".golden", err.Error()+"\n")
		})
	}
}

func compareGolden(t *testing.T, file, got string) {
	t.Helper()
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("got\n%s\nwant, as in %s,\n%s", got, file, want)
	}
}

// FuzzParse checks that an accepted file is valid, and gives the same configuration when
// it is read from JSON.
func FuzzParse(f *testing.F) {
	f.Add([]byte(minimal))
	f.Add([]byte(Document()))
	f.Add([]byte(filled()))
	files, err := filepath.Glob("testdata/invalid/*.[yj]*")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		config, err := Parse(file)
		if err != nil {
			if problems := (Problems{}); !errors.As(err, &problems) || len(problems) == 0 || config != nil {
				t.Fatalf("the error is not problems: %v", err)
			}
			return
		}
		if problems := Validate(config); len(problems) > 0 {
			t.Fatalf("accepted with %v", problems)
		}
		text, err := json.Marshal(config)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Parse(text)
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		if !reflect.DeepEqual(again, config) {
			t.Errorf("got %+v\nthen %+v", config, again)
		}
	})
}
