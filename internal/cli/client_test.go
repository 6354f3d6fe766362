package cli

import (
	"bytes"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/node-authorizer/node-authorizer/internal/cli/serve"
	"github.com/node-authorizer/node-authorizer/internal/testing/fakeaws"
)

// bootstrapService answers requests by a list, one line for each request:
//
//	200 {"Status": …}    the status and the body
//	503+60 {…}           with Retry-After
//	307>URL              a redirect
//	drop                 the connection ends without an answer
//	hang                 no answer comes
//
// The last line is repeated. Requests are written to a file.
type bootstrapService struct {
	mu      sync.Mutex
	answers []string
	asked   io.Writer
}

// startBootstrapService starts a bootstrapService for a script and sets $SERVICE to its URL.
// Its CA certificate is in the file ca.crt, and its requests are in the file asked:
//
//	bootstrapservice ANSWERS
func startBootstrapService(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: bootstrapservice ANSWERS")
	}
	asked, err := os.Create(ts.MkAbs("asked"))
	ts.Check(err)
	s := &bootstrapService{answers: strings.Split(strings.TrimSpace(ts.ReadFile(args[0])), "\n"), asked: asked}
	server := httptest.NewUnstartedServer(s)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	ts.Defer(func() {
		server.CloseClientConnections()
		server.Close()
		ts.Check(asked.Close())
	})
	ts.Check(os.WriteFile(ts.MkAbs("ca.crt"), authority(server), 0o600))
	ts.Setenv("SERVICE", server.URL)
}

func authority(server *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
}

func (s *bootstrapService) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	s.mu.Lock()
	fmt.Fprintf(s.asked, "%s %s %s\n", r.Method, r.URL.Path, body)
	line := s.answers[0]
	switch {
	case r.Method == http.MethodGet:
		s.mu.Unlock()
		http.NotFound(w, r)
		return
	case len(s.answers) > 1:
		s.answers = s.answers[1:]
	}
	s.mu.Unlock()
	answerByLine(w, r, line)
}

func answerByLine(w http.ResponseWriter, r *http.Request, line string) {
	head, body, _ := strings.Cut(line, " ")
	switch head {
	case "drop":
		panic(http.ErrAbortHandler)
	case "hang":
		<-r.Context().Done()
		return
	}
	code, after, wait := strings.Cut(head, "+")
	code, location, redirect := strings.Cut(code, ">")
	status, err := strconv.Atoi(code)
	if err != nil {
		panic(err)
	}
	if wait {
		w.Header().Set("Retry-After", after)
	}
	if redirect {
		w.Header().Set("Location", location)
	}
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}

// startInstance lets the programs of a script run on an EC2 instance:
//
//	instance ID ADDRESS
func startInstance(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: instance ID ADDRESS")
	}
	cloud, err := fakeaws.New()
	ts.Check(err)
	ts.Defer(cloud.Close)
	address, err := netip.ParseAddr(args[1])
	ts.Check(err)
	instance := cloud.Launch(fakeaws.Instance{
		ID: args[0], Region: "eu-west-1", Interfaces: []fakeaws.Interface{{Private: []netip.Addr{address}}},
	})
	metadata, err := cloud.Metadata(instance.ID)
	ts.Check(err)
	for _, variable := range metadata.Environment() {
		name, value, _ := strings.Cut(variable, "=")
		ts.Setenv(name, value)
	}
}

// kubeconfigHas checks a kubeconfig as a kubelet reads it:
//
//	kubeconfig FILE SERVER TOKEN CA-FILE
func kubeconfigHas(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 4 {
		ts.Fatalf("usage: kubeconfig FILE SERVER TOKEN CA-FILE")
	}
	path := ts.MkAbs(args[0])
	config, err := clientcmd.BuildConfigFromFlags("", path)
	ts.Check(err)
	if config.Host != args[1] || config.BearerToken != args[2] || string(config.CAData) != ts.ReadFile(args[3]) {
		ts.Fatalf("server %s, token %s, authorities %s", config.Host, config.BearerToken, config.CAData)
	}
	info, err := os.Stat(path)
	ts.Check(err)
	if info.Mode() != 0o600 {
		ts.Fatalf("mode %v", info.Mode())
	}
}

// TestSettingsOfMachinesAreThoseOfTheClient compares the settings in deploy/machine with the
// help of the client.
func TestSettingsOfMachinesAreThoseOfTheClient(t *testing.T) {
	var help bytes.Buffer
	if status := Main([]string{"node-authorizer", "client", "--help"}, nil, &help, &help); status != 0 {
		t.Fatalf("status %d: %s", status, help.String())
	}
	known := map[string]bool{}
	for flag, variable := range serve.JoiningVariables() {
		if !strings.Contains(help.String(), " --"+flag+" ") || !regexp.MustCompile(`\b`+variable+`\b`).MatchString(help.String()) {
			t.Errorf("the help lacks --%s or %s", flag, variable)
		}
		known[variable] = true
	}
	settings, err := os.ReadFile("../../deploy/machine/client.env")
	if err != nil {
		t.Fatal(err)
	}
	forCertificates, err := os.ReadFile("../../deploy/machine/client-certificate.env")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../deploy/machine/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, found := range slices.Concat(
		regexp.MustCompile(`(?m)^([^=]+)=`).FindAllSubmatch(settings, -1),
		regexp.MustCompile(`(?m)^#?([^ =]+)=`).FindAllSubmatch(forCertificates, -1),
		regexp.MustCompile("`((?:KUBEAPI|TLS|NODE)_[A-Z_]+)`").FindAllSubmatch(page, -1),
	) {
		if !known[string(found[1])] {
			t.Errorf("deploy/machine names %s, which the client does not have", found[1])
		}
	}
}

// TestKilledClientsLeaveNoPartialFiles kills the real program repeatedly, at times from its
// request for a token until after it wrote the kubeconfig. It must leave a complete
// kubeconfig or none, and the next run must succeed.
func TestKilledClientsLeaveNoPartialFiles(t *testing.T) {
	if testing.Short() {
		t.Skip("kills many processes")
	}
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	program, file := filepath.Join(folder, "node-authorizer"), filepath.Join(folder, "kubelet", "bootstrap-kubeconfig")
	if err := os.Symlink(executable, program); err != nil {
		t.Fatal(err)
	}
	answered := make(chan struct{}, 1)
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			http.NotFound(w, r)
			return
		}
		_, _ = io.WriteString(w, `{"Status":{"Allowed":true,"Token":"abc123.0123456789abcdef"}}`)
		answered <- struct{}{}
	}))
	defer server.Close()
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	authorities := filepath.Join(folder, "ca.crt")
	if err := os.WriteFile(authorities, authority(server), 0o600); err != nil {
		t.Fatal(err)
	}
	start := func() *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), program, "client",
			"--authorizer=alwaysallow", "--node-name=worker-1", "--node-url="+server.URL,
			"--kubeapi-url=https://api.example.com", "--tls-client-ca="+authorities, "--kubeconfig="+file)
		cmd.Stderr = new(bytes.Buffer)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd
	}
	written := 0
	const kills = 60
	for i := range kills {
		cmd := start()
		<-answered
		// From immediately to two milliseconds later.
		timer := time.AfterFunc(time.Duration(i)*30*time.Microsecond, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait()
		timer.Stop()
		switch config, err := clientcmd.LoadFromFile(file); {
		case os.IsNotExist(err):
		case err != nil || config.AuthInfos["bootstrap-context"].Token != "abc123.0123456789abcdef":
			t.Fatalf("kill %d: the kubeconfig is incomplete: %v", i, err)
		default:
			written++
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
		}
		if left, err := os.ReadDir(filepath.Dir(file)); err != nil || len(left) > 0 {
			t.Fatalf("kill %d leaves %v, error %v", i, left, err)
		}
	}
	t.Logf("%d of %d killed clients had written the kubeconfig", written, kills)
	cmd := start()
	<-answered
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v: %s", err, cmd.Stderr)
	}
	if _, err := clientcmd.LoadFromFile(file); err != nil {
		t.Error(err)
	}
}
