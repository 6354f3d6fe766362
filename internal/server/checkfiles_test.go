package server

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
)

// checkedFiles are the files of a configuration with everything that names a file.
type checkedFiles struct {
	t                *testing.T
	config           *v1alpha1.ServerConfiguration
	servers, callers *authority
	caller           *tls.Certificate
	// secrets must not be in any output.
	secrets []string
}

const (
	secretToken    = "the-secret-token-of-the-server"
	goodChain      = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\nauthorizers:\n- {type: Node, name: node}\n"
	goodMappings   = "mapRoles:\n- {rolearn: \"arn:aws:iam::111122223333:role/ops\", username: ops, groups: [ops]}\n"
	kubeconfigForm = `{"apiVersion": "v1", "kind": "Config", "current-context": "c",
		"clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"%s}}],
		"users": [{"name": "c", "user": {%s}}],
		"contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}]}`
)

func kubeconfigWith(cluster, user string) []byte {
	return []byte(fmt.Sprintf(kubeconfigForm, cluster, user))
}

func newCheckedFiles(t *testing.T) *checkedFiles {
	t.Helper()
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	f := &checkedFiles{t: t, servers: newAuthority(t, "servers"), callers: newAuthority(t, "callers"), secrets: []string{secretToken}}
	f.caller = f.callers.long("kube-apiserver", x509.ExtKeyUsageClientAuth)
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	c := v1alpha1.Defaults()
	f.config = c
	c.Metrics.Address = ""
	c.Cluster.Kubeconfig = path("kubeconfig")
	w, b := &c.Webhook, &c.Bootstrap
	w.Address, w.CertificateFile, w.KeyFile, w.ClientCAFile = "127.0.0.1:0", path("tls.crt"), path("tls.key"), path("ca.crt")
	w.AllowedClientNames = []string{"kube-apiserver"}
	w.Serves = []v1alpha1.Served{v1alpha1.ServeAuthorization, v1alpha1.ServeAuthentication}
	b.Address, b.ClientCAFile = "127.0.0.1:0", path("machines-ca.crt")
	b.CertificateFile, b.KeyFile = path("machines.crt"), path("machines.key")
	b.CertificateWait.Duration = 0
	b.Attestor, b.AWS.ClusterName, b.AWS.CertificatesFile = v1alpha1.AWSAttestor, "shop", path("aws.pem")
	b.AWS.Regions, b.AWS.Accounts = []string{"eu-west-1"}, []string{"111122223333"}
	c.Authorization.Mode, c.Authorization.ConfigFile = v1alpha1.ChainMode, path("authorization.yaml")
	c.IAM.ClusterID, c.IAM.Sources, c.IAM.File = "shop", []v1alpha1.MappingSource{v1alpha1.FileSource}, path("mappings.yaml")
	if problems := v1alpha1.Validate(c); len(problems) > 0 {
		t.Fatal(problems)
	}
	authorities := f.longAuthority(f.callers)
	f.pair(w.CertificateFile, w.KeyFile, nil)
	f.pair(b.CertificateFile, b.KeyFile, nil)
	f.put(w.ClientCAFile, authorities)
	f.put(b.ClientCAFile, authorities)
	f.put(b.AWS.CertificatesFile, authorities)
	f.put(c.Authorization.ConfigFile, []byte(goodChain))
	f.put(c.IAM.File, []byte(goodMappings))
	f.put(c.Cluster.Kubeconfig, kubeconfigWith("", `"token": "`+secretToken+`"`))
	return f
}

func (f *checkedFiles) put(path string, text []byte) {
	f.t.Helper()
	write(f.t, path, text)
}

// pair writes a certificate of the servers' authority, after a change, and its key.
func (f *checkedFiles) pair(certificatePath, keyPath string, change func(*x509.Certificate)) {
	f.t.Helper()
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "node-authorizer"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(30 * 24 * time.Hour),
	}
	if change != nil {
		change(template)
	}
	key := newKey(f.t)
	_, certificate := f.servers.sign(template, key)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		f.t.Fatal(err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	f.secrets = append(f.secrets, base64.StdEncoding.EncodeToString(der)[20:60])
	f.put(certificatePath, certificate)
	f.put(keyPath, text)
}

// long returns a certificate that does not expire soon.
func (a *authority) long(name string, usage x509.ExtKeyUsage) *tls.Certificate {
	a.t.Helper()
	certificate, key := a.leaf(name, usage, time.Now().Add(30*24*time.Hour))
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		a.t.Fatal(err)
	}
	return &pair
}

// longAuthority returns a certificate of an authority that does not expire soon, after changes.
func (f *checkedFiles) longAuthority(a *authority, changes ...func(*x509.Certificate)) []byte {
	template := &x509.Certificate{
		Subject: a.certificate.Subject, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(30 * 24 * time.Hour),
	}
	for _, change := range changes {
		change(template)
	}
	self := &authority{t: f.t, key: a.key}
	_, text := self.sign(template, a.key)
	return text
}

// works reports why a server with these files does not serve the API server: it does not start, is not
// ready as far as files decide, or refuses the API server, or the API server refuses it.
func (f *checkedFiles) works() error {
	f.t.Helper()
	s, err := New(f.config, Options{Logger: logr.Discard()})
	if err != nil {
		return err
	}
	defer s.close()
	for _, e := range []*endpoint{s.webhook, s.bootstrap} {
		if _, err := e.certificates.state(); err != nil {
			return err
		}
		if err := f.handshake(e); err != nil {
			return err
		}
	}
	ctx := f.t.Context()
	followed := make(chan struct{})
	go func() { defer close(followed); s.authentication.mappings.Run(ctx) }()
	var read error
	eventually(f.t, "the file with mappings is read", func() bool {
		read = s.authentication.mappings.Synced()
		return read == nil || !strings.Contains(read.Error(), "has not been read yet") || strings.Contains(read.Error(), "read iam.file")
	})
	return read
}

// handshake connects as the API server does.
func (f *checkedFiles) handshake(e *endpoint) error {
	roots := x509.NewCertPool()
	certificate, err := x509.ParseCertificate(mustDecode(f.longAuthority(f.servers)))
	if err != nil {
		f.t.Fatal(err)
	}
	roots.AddCert(certificate)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		f.t.Fatal(err)
	}
	defer listener.Close()
	served := make(chan error, 1)
	go func() {
		accepted, err := listener.Accept()
		if err != nil {
			served <- err
			return
		}
		defer accepted.Close()
		conn := tls.Server(accepted, e.certificates.tlsConfig())
		err = conn.HandshakeContext(f.t.Context())
		if callers := e.certificates.current.Load().callers; err == nil && callers != nil {
			_, err = verifyShown(conn.ConnectionState().PeerCertificates, callers, time.Now())
		}
		served <- err
	}()
	conn, err := tls.Dial("tcp", listener.Addr().String(), &tls.Config{RootCAs: roots, GetClientCertificate: func(
		*tls.CertificateRequestInfo,
	) (*tls.Certificate, error) {
		return f.caller, nil
	}})
	if err == nil {
		defer conn.Close()
	}
	return errors.Join(err, <-served)
}

func mustDecode(text []byte) []byte {
	block, _ := pem.Decode(text)
	return block.Bytes
}

// TestCheckFilesAgreesWithTheServer: files that CheckFiles reports, other than with a warning, are
// those with which the server does not work.
func TestCheckFilesAgreesWithTheServer(t *testing.T) {
	for rule, tc := range fileCases() {
		t.Run(rule, func(t *testing.T) {
			f := newCheckedFiles(t)
			if tc.change != nil {
				tc.change(f)
			}
			var wrong, warnings []string
			for _, p := range CheckFiles(f.config, time.Now()) {
				if text := p.String(); p.Warning {
					warnings = append(warnings, text)
				} else {
					wrong = append(wrong, text)
				}
				if missing := strings.Contains(p.String(), "no such file"); p.Missing != missing {
					t.Errorf("%v: missing is %v", p, p.Missing)
				}
			}
			err := f.works()
			if (err != nil) != (len(wrong) > 0) {
				t.Errorf("the server says %v, the check %q", err, wrong)
			}
			said(t, "problems", wrong, tc.wrong)
			said(t, "warnings", warnings, tc.warning)
			for _, secret := range f.secrets {
				if strings.Contains(fmt.Sprint(wrong, warnings, err), secret) {
					t.Errorf("a secret is in %q, %q or %v", wrong, warnings, err)
				}
			}
		})
	}
}

func said(t *testing.T, what string, got []string, want string) {
	t.Helper()
	if want == "" && len(got) > 0 || want != "" && !strings.Contains(strings.Join(got, "\n"), want) {
		t.Errorf("%s are %q, want %q", what, got, want)
	}
}

func TestEveryMissingFileIsReported(t *testing.T) {
	f := newCheckedFiles(t)
	if err := os.RemoveAll(filepath.Dir(f.config.Webhook.KeyFile)); err != nil {
		t.Fatal(err)
	}
	var fields []string
	for _, p := range CheckFiles(f.config, time.Now()) {
		if p.Missing && !p.Warning {
			fields = append(fields, p.Field)
		}
	}
	want := "cluster.kubeconfig webhook.certificateFile webhook.keyFile webhook.clientCAFile bootstrap.certificateFile " +
		"bootstrap.keyFile bootstrap.clientCAFile bootstrap.aws.certificatesFile authorization.configFile iam.file"
	if got := strings.Join(fields, " "); got != want {
		t.Errorf("got %s", got)
	}
}

// Files that the server does not read are not checked.
func TestFilesThatAreNotUsedAreNotChecked(t *testing.T) {
	f := newCheckedFiles(t)
	if err := os.RemoveAll(filepath.Dir(f.config.Webhook.KeyFile)); err != nil {
		t.Fatal(err)
	}
	f.config.Webhook.Address, f.config.Bootstrap.Address = "", ""
	if got := CheckFiles(f.config, time.Now()); len(got) > 0 {
		t.Errorf("got %+v", got)
	}
}

// A server that reads mappings from a file needs no API server, unless it follows quarantines.
func TestQuarantinesNeedTheCluster(t *testing.T) {
	f := newCheckedFiles(t)
	f.config.Bootstrap.Address = ""
	f.config.Webhook.Serves = []v1alpha1.Served{v1alpha1.ServeAuthentication}
	f.config.Authorization.Mode = v1alpha1.NodeMode
	if err := os.Remove(f.config.Cluster.Kubeconfig); err != nil {
		t.Fatal(err)
	}
	if got := CheckFiles(f.config, time.Now()); len(got) > 0 {
		t.Errorf("without quarantines: got %+v", got)
	}
	f.config.Containment.Quarantines = v1alpha1.Enabled
	if got := CheckFiles(f.config, time.Now()); len(got) != 1 || got[0].Field != "cluster.kubeconfig" || !got[0].Missing {
		t.Errorf("with quarantines: got %+v", got)
	}
}
