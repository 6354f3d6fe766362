package server

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/testing/fakeaws"
)

func TestTokensOfInstancesAreThoseOfTheirNodes(t *testing.T) { // sets the environment of the SDK
	s := newAuthenticationServer(t, nodeRoles+opsRoles, func(c *v1alpha1.ServerConfiguration) {
		c.IAM.EC2.VPCs = []string{"vpc-0123456789abcdef0"}
	})
	s.ready()
	worker, other, remote := s.launch("node"), s.launch("ops"), s.launch("node")
	for _, i := range []fakeaws.Instance{worker, other} {
		s.cloud.Change(i.ID, func(i *fakeaws.Instance) { i.VPC = "vpc-0123456789abcdef0" })
	}
	name := "system:node:" + worker.PrivateDNSName
	token := s.tokenOf(s.cloud.Role(worker.ID))
	for _, version := range []string{"authentication.k8s.io/v1", "authentication.k8s.io/v1beta1"} {
		got, answer := s.reviewAs(version, token)
		want := authenticationv1.UserInfo{
			Username: name, UID: answer.User.UID, Groups: []string{"system:bootstrappers", "system:nodes"},
			Extra: answer.User.Extra,
		}
		if got.status != http.StatusOK || !answer.Authenticated || !reflect.DeepEqual(answer.User, want) || answer.Error != "" ||
			!strings.HasPrefix(answer.User.UID, "aws-iam-authenticator:"+account+":AROA") {
			t.Errorf("%s: got %d %+v", version, got.status, answer)
		}
		if got := answer.User.Extra["canonicalArn"]; !slices.Equal(got, []string{"arn:aws:iam::" + account + ":role/node"}) {
			t.Errorf("the canonical ARN is %v", got)
		}
	}
	for rule, tc := range map[string]struct{ token, want string }{
		"a session with the name of a user": {
			s.tokenOf(s.cloud.Session(account, "ops", "ada@example.com")), "ops:ada-example.com",
		},
		"a role that is not mapped": {s.tokenOf(s.cloud.Session(account, "guest", "ada")), "NotMapped"},
		"a session with the name of another node's instance": {
			s.tokenOf(s.cloud.Session(account, "node", other.ID)), "SessionRoleMismatch",
		},
		"an instance of another VPC": {s.tokenOf(s.cloud.Role(remote.ID)), "SessionOtherVPC"},
		"a session with the name of an unknown instance": {
			s.tokenOf(s.cloud.Session(account, "node", "i-0123456789abcdef0")), "SessionInstanceUnknown",
		},
		"a session whose name is not an instance id": {s.tokenOf(s.cloud.Session(account, "node", "ada")), "SessionNotInstance"},
		"not a token": {"guess", "TokenPrefixMissing"},
		"no token":    {"", "TokenMissing"},
		"a signature that STS does not accept": {
			s.tokenOf(fakeaws.Credentials{AccessKeyID: "ASIA0123456789ABCDEF", SecretAccessKey: "x"}), "STSRefused",
		},
		"a session of the same name in another account": {s.tokenOf(s.cloud.Session("444455556666", "node", worker.ID)), "NotMapped"},
	} {
		if got := s.user(tc.token); got != tc.want {
			t.Errorf("%s is %q, want %q", rule, got, tc.want)
		}
	}
	for name, want := range map[string]string{
		`node_authorizer_authentications_total{code="",outcome="authenticated"}`:              "3",
		`node_authorizer_authentications_total{code="SessionRoleMismatch",outcome="refused"}`: "1",
		`node_authorizer_authentications_total{code="TokenMissing",outcome="refused"}`:        "1",
		`node_authorizer_mappings{kind="role",source="ConfigMap"}`:                            "2",
		`node_authorizer_mapping_source_healthy{source="ConfigMap"}`:                          "1",
		`node_authorizer_token_cache_total{result="hit"}`:                                     "1",
	} {
		if got := s.metric(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if log := s.log.String(); !strings.Contains(log, "NotMapped") || !strings.Contains(log, "role/guest") {
		t.Errorf("the log does not have the refusal:\n%s", log)
	}
}

func TestAudiencesAreThoseOfTheConfiguration(t *testing.T) { // sets the environment of the SDK
	s := newAuthenticationServer(t, opsRoles, func(c *v1alpha1.ServerConfiguration) {
		c.IAM.Audiences = []string{"https://kubernetes.default.svc", "shop"}
	})
	s.ready()
	token := s.tokenOf(s.cloud.Session(account, "ops", "ada"))
	for _, tc := range []struct {
		asked, want   []string
		authenticated bool
	}{
		{[]string{"shop", "vault"}, []string{"shop"}, true},
		{[]string{"vault"}, nil, false},
		{nil, nil, true},
	} {
		_, answer := s.review(token, tc.asked...)
		if answer.Authenticated != tc.authenticated || !slices.Equal(answer.Audiences, tc.want) {
			t.Errorf("asked for %v: got %+v", tc.asked, answer)
		}
	}
}

func TestFailuresOfAWSAreErrors(t *testing.T) { // sets the environment of the SDK
	s := newAuthenticationServer(t, nodeRoles+opsRoles, func(c *v1alpha1.ServerConfiguration) {
		c.IAM.STS.CacheTTL = metav1.Duration{}
	})
	s.ready()
	worker := s.launch("node")
	node, ops := s.tokenOf(s.cloud.Role(worker.ID)), s.tokenOf(s.cloud.Session(account, "ops", "ada"))
	s.cloud.STS.Break(fakeaws.Fault{Kind: fakeaws.Broken})
	if got := s.user(ops); got != "503" {
		t.Errorf("while STS is broken, got %s", got)
	}
	s.cloud.STS.Break(fakeaws.Fault{Kind: fakeaws.Throttled})
	if got := s.user(ops); got != "429" {
		t.Errorf("while STS throttles, got %s", got)
	}
	s.cloud.STS.Heal()
	s.cloud.EC2.Break(fakeaws.Fault{Kind: fakeaws.Forbidden})
	if got := s.user(node); got != "503" {
		t.Errorf("while EC2 refuses the server, a node is %s", got)
	}
	if got := s.user(ops); got != "ops:ada" {
		t.Errorf("while EC2 refuses the server, another user is %s", got)
	}
	s.cloud.EC2.Heal()
	if got, want := s.user(node), "system:node:"+worker.PrivateDNSName; got != want {
		t.Errorf("afterwards got %s, want %s", got, want)
	}
}

// A server that only authenticates callers needs no right to read pods.
func TestAuthenticationAloneReadsOnlyMappings(t *testing.T) { // sets the environment of the SDK
	s := newAuthenticationServer(t, opsRoles+"- {username: nobody}\n", nil)
	s.ready()
	for path, want := range map[string]int{"/authorize": 404, "/admit": 404, "/mutate": 404, "/authenticate": 400} {
		if got, err := s.post(s.caller, path, "{}"); err != nil || got.status != want {
			t.Errorf("%s: got %+v, %v", path, got, err)
		}
	}
	if got, err := s.post(s.testListeners.caller(nil), "/authenticate", "{}"); err == nil {
		t.Errorf("a caller without a certificate: got %+v, %v", got, err)
	}
	_, body := s.readiness()
	if !strings.Contains(body, "[+]mappings ok") || !strings.Contains(body, "[+]ec2 ok") || strings.Contains(body, "graph") {
		t.Errorf("readyz: got %s", body)
	}
	const createEvent = "POST /api/v1/namespaces/kube-system/events"
	eventually(t, "the finding has an event", func() bool { return s.asked.count(createEvent) == 1 })
	want := []string{"GET /api/v1/namespaces/kube-system/configmaps", "POST /api/v1/namespaces/kube-system/events"}
	if got := s.asked.all(); !slices.Equal(got, want) {
		t.Errorf("the cluster was asked for\n%s", strings.Join(got, "\n"))
	}
}

func TestAFileOfMappingsNeedsNoCluster(t *testing.T) { // sets the environment of the SDK
	s := newAuthenticationServer(t, "", func(c *v1alpha1.ServerConfiguration) {
		c.IAM.Sources = []v1alpha1.MappingSource{v1alpha1.FileSource}
		c.IAM.File = filepath.Join(t.TempDir(), "mappings.yaml")
		write(t, c.IAM.File, []byte("mapRoles:\n"+opsRoles))
		c.Cluster.Kubeconfig = ""
	})
	s.ready()
	if got := s.user(s.tokenOf(s.cloud.Session(account, "ops", "ada"))); got != "ops:ada" {
		t.Errorf("got %s", got)
	}
	if asked := s.asked.all(); asked != nil {
		t.Errorf("the cluster was asked for %v", asked)
	}
}

func TestNoTokenIsAuthenticatedBeforeTheMappingsAreRead(t *testing.T) { // sets the environment of the SDK
	s := newAuthenticationServer(t, opsRoles, nil, func(s *authenticationServer) { s.asked.outage(true) })
	ops := s.tokenOf(s.cloud.Session(account, "ops", "ada"))
	guest := s.tokenOf(s.cloud.Session(account, "guest", "ada"))
	if got, err := s.get(s.caller, "/livez"); err != nil || got.status != 200 {
		t.Errorf("livez: got %+v, %v", got, err)
	}
	for _, token := range []string{ops, guest} {
		if got := s.user(token); got != "503" {
			t.Errorf("got %s", got)
		}
	}
	eventually(t, "readyz has the reason", func() bool {
		status, body := s.readiness()
		return status == 503 && strings.Contains(body, "[-]mappings failed: ConfigMap kube-system/aws-auth has not been read yet: ")
	})
	s.asked.outage(false)
	s.ready()
	if got := s.user(ops); got != "ops:ada" {
		t.Errorf("got %s", got)
	}
	if got := s.user(guest); got != "NotMapped" {
		t.Errorf("got %s", got)
	}
	log := s.log.String()
	if strings.Count(log, "mappings cannot be read;") != 1 || strings.Count(log, "mappings can be read again") != 1 {
		t.Errorf("the log is\n%s", log)
	}
}

// aws-auth is edited while the tokens of a node and a person are reviewed continuously. Only valid
// edits change the users.
func TestMappingsAreEditedUnderLoad(t *testing.T) { // sets the environment of the SDK
	s := newAuthenticationServer(t, nodeRoles+opsRoles, nil)
	s.ready()
	worker := s.launch("node")
	name := "system:node:" + worker.PrivateDNSName
	node, ops := s.tokenOf(s.cloud.Role(worker.ID)), s.tokenOf(s.cloud.Session(account, "ops", "ada"))

	teamRoles := strings.Replace(opsRoles, "ops:{{", "team:{{", 1)
	load := &load{seen: map[string]bool{}}
	stop := load.ask(t.Context(), map[string]func() string{
		"node": func() string { return s.user(node) }, "ops": func() string { return s.user(ops) },
	})
	defer stop()
	for _, step := range []struct {
		rule  string
		roles *string // nil: the ConfigMap is deleted
		// allowed are the answers from this edit to the next, last those after the edit has
		// taken effect.
		allowed, last []string
		finding       string
	}{
		{
			"at first", pointer(nodeRoles + opsRoles),
			[]string{"node " + name, "ops ops:ada"},
			[]string{"node " + name, "ops ops:ada"},
			"",
		},
		{
			"a valid edit", pointer(nodeRoles + teamRoles),
			[]string{"node " + name, "ops ops:ada", "ops team:ada"},
			[]string{"ops team:ada"},
			"",
		},
		{
			"an invalid entry", pointer(nodeRoles + teamRoles + "- {username: x}\n"),
			[]string{"node " + name, "ops team:ada"},
			nil, "MappingInvalid",
		},
		{
			"broken YAML", pointer("- rolearn: [" + nodeRoles),
			[]string{"node " + name, "ops team:ada"},
			nil, "MappingSyntax",
		},
		{
			"a valid edit after it", pointer(opsRoles),
			[]string{"node " + name, "node NotMapped", "ops team:ada", "ops ops:ada"},
			[]string{"node NotMapped", "ops ops:ada"},
			"",
		},
		{
			"deleted", nil,
			[]string{"node NotMapped", "ops ops:ada", "ops NotMapped"},
			[]string{"ops NotMapped"},
			"MappingSourceMissing",
		},
		{
			"restored", pointer(nodeRoles + opsRoles),
			[]string{"node NotMapped", "ops NotMapped", "node " + name, "ops ops:ada"},
			[]string{"node " + name, "ops ops:ada"},
			"",
		},
	} {
		load.begin()
		if step.roles == nil {
			s.cluster.Remove(awsAuth)
		} else {
			s.aws(map[string]string{"mapRoles": *step.roles})
		}
		eventually(t, step.rule+" is noticed", func() bool {
			found := s.server.authentication.mappings.Findings()
			if step.finding == "" {
				return len(found) == 0 && load.saw(step.last...)
			}
			return len(found) == 1 && string(found[0].Code) == step.finding && load.saw(step.last...)
		})
		load.more(t)
		if odd := load.others(step.allowed); odd != nil {
			t.Errorf("%s: also got %q", step.rule, odd)
		}
	}
	if t.Failed() {
		t.Log(s.log.String())
	}
	for text, times := range map[string]int{
		`"code"="MappingSyntax"`: 2, `"code"="MappingInvalid"`: 2, `"code"="MappingSourceMissing"`: 2,
	} {
		if n := strings.Count(s.log.String(), text); n != times { // found, and fixed
			t.Errorf("logged %d times, want %d: %s", n, times, text)
		}
	}
	client := kubernetes.NewForConfigOrDie(s.cluster.Config())
	list, err := client.CoreV1().Events("kube-system").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var reasons []string
	for _, e := range list.Items {
		if e.InvolvedObject.Name == "aws-auth" && e.Type == corev1.EventTypeWarning {
			reasons = append(reasons, e.Reason)
		}
	}
	if slices.Sort(reasons); !slices.Equal(reasons, []string{"MappingInvalid", "MappingSyntax"}) {
		t.Errorf("events are of %v", reasons)
	}
}

func pointer(s string) *string { return &s }

// load sends requests continuously and records the answers.
type load struct {
	mu    sync.Mutex
	seen  map[string]bool
	asked int
}

// ask starts to send several kinds of requests; the returned function stops that.
func (l *load) ask(ctx context.Context, questions map[string]func() string) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var asking sync.WaitGroup
	for about, question := range questions {
		asking.Go(func() {
			for ctx.Err() == nil {
				answer := about + " " + question()
				l.mu.Lock()
				l.seen[answer] = true
				l.asked++
				l.mu.Unlock()
			}
		})
	}
	return func() {
		cancel()
		asking.Wait()
	}
}

// begin removes the recorded answers.
func (l *load) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen = map[string]bool{}
}

// more waits until later requests have been answered.
func (l *load) more(t *testing.T) {
	t.Helper()
	from := l.answered()
	eventually(t, "more requests are answered", func() bool { return l.answered() > from+20 })
}

func (l *load) answered() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.asked
}

func (l *load) saw(answers ...string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !slices.ContainsFunc(answers, func(a string) bool { return !l.seen[a] })
}

func (l *load) others(allowed []string) (odd []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for answer := range l.seen {
		if !slices.Contains(allowed, answer) {
			odd = append(odd, answer)
		}
	}
	slices.Sort(odd)
	return odd
}

// A server may serve authorization and authentication.
func TestAuthenticationAndAuthorization(t *testing.T) { // sets the environment of the SDK
	cloud, err := fakeaws.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cloud.Close)
	front, err := cloud.Front(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	setCredentials(t, cloud.User(account, "node-authorizer"))
	s := startTestServer(t, shop(t).URL, func(c *v1alpha1.ServerConfiguration) {
		withoutWaits(c)
		c.Webhook.Serves = []v1alpha1.Served{v1alpha1.ServeAuthorization, v1alpha1.ServeAuthentication}
		c.IAM.ClusterID, c.IAM.Region = "blue", "eu-west-1"
		c.IAM.Sources = []v1alpha1.MappingSource{v1alpha1.FileSource}
		c.IAM.File = filepath.Join(t.TempDir(), "mappings.yaml")
		write(t, c.IAM.File, []byte("mapRoles:\n"+opsRoles))
	}, func(o *Options) { o.aws = front.Transport() })
	s.ready()
	if got := s.askNode("a", "get", "secrets", "db"); !got.Allowed {
		t.Errorf("a decision: got %+v", got)
	}
	r := &authenticationServer{testServer: s, cloud: cloud}
	if got := r.user(r.tokenOf(cloud.Session(account, "ops", "ada"))); got != "ops:ada" {
		t.Errorf("a token: got %s", got)
	}
	if got, err := s.post(s.caller, "/admit", "{}"); err != nil || got.status != 404 {
		t.Errorf("a path that is not served: got %+v, %v", got, err)
	}
	if _, body := s.readiness(); !strings.Contains(body, "[+]graph-sync ok") || !strings.Contains(body, "[+]mappings ok") {
		t.Errorf("readyz: got %s", body)
	}
}

// Without iam.region, the region comes from the metadata service.
func TestTheRegionMayBeKnownLater(t *testing.T) { // sets the environment of the SDK
	s := newAuthenticationServer(t, nodeRoles, func(c *v1alpha1.ServerConfiguration) {
		c.IAM.Region = ""
		for _, name := range []string{"AWS_REGION", "AWS_DEFAULT_REGION"} {
			t.Setenv(name, "")
		}
	})
	eventually(t, "readyz has the reason", func() bool {
		status, body := s.readiness()
		return status == 503 && strings.Contains(body, "[+]mappings ok") &&
			strings.Contains(body, "[-]ec2 failed: waiting for the look-up of instances: ")
	})
	worker := s.launch("node")
	token := s.tokenOf(s.cloud.Role(worker.ID))
	if got := s.user(token); got != "503" {
		t.Errorf("before the region is known, a node is %s", got)
	}
	setCredentials(t, s.cloud.User(account, "node-authorizer"))
	t.Setenv("AWS_REGION", "eu-west-1") // last: the server reads all of them as soon as it is set
	s.ready()
	if got, want := s.user(token), "system:node:"+worker.PrivateDNSName; got != want {
		t.Errorf("afterwards got %s, want %s", got, want)
	}
	if n := len(regexp.MustCompile(`"waiting for the look-up of instances" "cause"`).FindAllString(s.log.String(), -1)); n != 1 {
		t.Errorf("it was logged %d times: %s", n, fmt.Sprint(s.log))
	}
}
