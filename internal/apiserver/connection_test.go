package apiserver

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// observed records the calls of an observer.
type observed struct{ calls []string }

func (o *observed) CredentialsRead()              { o.calls = append(o.calls, "read") }
func (o *observed) CredentialsRejected(err error) { o.calls = append(o.calls, err.Error()) }

// opened is a connection under test.
type opened struct {
	*Connection
	t       *testing.T
	cluster *cluster
	files   files
	observed
	client *http.Client
}

func open(t *testing.T, c *cluster, f files) *opened {
	t.Helper()
	o := &opened{t: t, cluster: c, files: f}
	var err error
	if o.Connection, err = Open(Options{
		Kubeconfig: f.path("kubeconfig"), UserAgent: "test", Observer: &o.observed, dial: c.dial,
	}); err != nil {
		t.Fatal(err)
	}
	if o.client, err = rest.HTTPClientFor(o.Config()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.current.Load().retire() })
	return o
}

func (o *opened) get(path string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(o.t.Context(), http.MethodGet, o.Config().Host+path, nil)
	if err != nil {
		o.t.Fatal(err)
	}
	return o.client.Do(request)
}

// ask sends a request and returns the user and token that the API server saw.
func (o *opened) ask() string {
	o.t.Helper()
	response, err := o.get("/version")
	if err != nil {
		o.t.Fatal(err)
	}
	defer response.Body.Close()
	if _, err := io.ReadAll(response.Body); err != nil {
		o.t.Fatal(err)
	}
	last := o.cluster.last.Load()
	return last.TLS.PeerCertificates[0].Subject.CommonName + " " + last.Header.Get("Authorization")
}

// watched is an open watch.
type openWatch struct{ ended chan error }

func (o *opened) watch(query string) *openWatch {
	o.t.Helper()
	response, err := o.get("/api/v1/pods?watch=true" + query)
	if err != nil {
		o.t.Fatal(err)
	}
	w := &openWatch{make(chan error, 1)}
	go func() {
		defer response.Body.Close()
		_, err := io.Copy(io.Discard, response.Body)
		w.ended <- err
	}()
	return w
}

const bookmarks = "&allowWatchBookmarks=true"

func TestSilenceIsDetectedInSeconds(t *testing.T) {
	for _, tc := range []struct {
		rule     string
		protocol []string
		// within is the time from the start of the silence to the end of the watch.
		within time.Duration
	}{
		{"a ping detects it with HTTP/2", nil, 11 * time.Second},
		{"a missing bookmark detects it with HTTP/1.1", []string{"http/1.1"}, 91 * time.Second},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t, tc.protocol...)
				o := open(t, c, newFiles(t, c))
				w := o.watch(bookmarks)
				time.Sleep(10 * time.Minute) // bookmarks keep it alive
				select {
				case err := <-w.ended:
					t.Fatalf("a watch with bookmarks ended: %v", err)
				default:
				}
				c.silent.Store(true)
				began := time.Now()
				err := <-w.ended
				if took := time.Since(began); err == nil || took > tc.within {
					t.Errorf("the watch ended after %v with %v, want an error within %v", took, err, tc.within)
				}
				began = time.Now()
				_, err = o.get("/version")
				if took := time.Since(began); err == nil || took > defaultLimits().handshake+defaultLimits().dial {
					t.Errorf("a request during the silence: %v after %v", err, took)
				}
				c.silent.Store(false)
				if got := o.ask(); got != "first Bearer token-1" {
					t.Errorf("after the silence: %q", got)
				}
			})
		})
	}
}

func TestBookmarksDetectSilenceBehindAProxy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		o := open(t, c, newFiles(t, c))
		c.mute.Store(true)
		without := o.watch("")
		began := time.Now()
		err := <-o.watch(bookmarks).ended
		var silent *silenceError
		if took := time.Since(began); !errors.As(err, &silent) || took != defaultLimits().watchSilence {
			t.Errorf("ended after %v with %v", took, err)
		}
		time.Sleep(time.Hour)
		select {
		case err := <-without.ended:
			t.Errorf("a watch without bookmarks ended: %v", err)
		default:
		}
	})
}

func TestRequestsEndInTime(t *testing.T) {
	for _, tc := range []struct {
		path string
		want time.Duration
	}{
		{"/version", defaultLimits().answer},
		{"/api/v1/pods?watch=true", defaultLimits().watchBegins},
	} {
		t.Run(tc.path, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t)
				o := open(t, c, newFiles(t, c))
				never := make(chan struct{})
				c.answer.Store(&never)
				began := time.Now()
				_, err := o.get(tc.path)
				if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took != tc.want ||
					!strings.Contains(err.Error(), "the API server is silent") {
					t.Errorf("got %v after %v, want a timeout after %v", err, took, tc.want)
				}
			})
		})
	}
}

func TestChangedCredentialsAreUsed(t *testing.T) {
	other := newAuthority(t, "other")
	otherCert, otherKey := other.leaf(t, "second")
	inlined := func(f files, c *cluster, certificate, key []byte) []byte {
		return fmt.Appendf(nil, `apiVersion: v1
kind: Config
current-context: it
contexts: [{name: it, context: {cluster: it, user: it}}]
clusters: [{name: it, cluster: {server: "https://%s", certificate-authority-data: %s}}]
users: [{name: it, user: {client-certificate-data: %s, client-key-data: %s}}]
`, host, base64.StdEncoding.EncodeToString(c.authority.pem),
			base64.StdEncoding.EncodeToString(certificate), base64.StdEncoding.EncodeToString(key))
	}
	for _, tc := range []struct {
		rule   string
		change func(*testing.T, files, *cluster)
		want   string
		// restarts is whether watches are restarted.
		restarts bool
	}{
		{"a certificate and its key", func(t *testing.T, f files, _ *cluster) {
			f.write(t, "client.crt", otherCert)
			f.write(t, "client.key", otherKey)
		}, "second Bearer token-1", true},
		{"a token, without new watches", func(t *testing.T, f files, _ *cluster) {
			f.write(t, "token", []byte("token-2"))
		}, "first Bearer token-2", false},
		{"the CA of the API server", func(t *testing.T, f files, c *cluster) {
			c.useCertificateOf(t, other)
			f.write(t, "ca.crt", slices.Concat(c.authority.pem, other.pem))
		}, "first Bearer token-1", true},
		{"a kubeconfig that holds everything", func(t *testing.T, f files, c *cluster) {
			f.write(t, "kubeconfig", inlined(f, c, otherCert, otherKey))
		}, "second ", true},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t)
				o := open(t, c, newFiles(t, c))
				if got := o.ask(); got != "first Bearer token-1" {
					t.Fatalf("before: %q", got)
				}
				w := o.watch(bookmarks)
				running, stop := context.WithCancel(t.Context())
				ended := make(chan struct{})
				go func() { o.Run(running); close(ended) }()
				tc.change(t, o.files, c)
				time.Sleep(2*defaultInterval + time.Second)
				synctest.Wait()
				if got := o.ask(); got != tc.want {
					t.Errorf("five seconds later: %q, want %q", got, tc.want)
				}
				if got := strings.Join(o.calls, "\n"); got != "read" {
					t.Errorf("observed %q", got)
				}
				select {
				case err := <-w.ended:
					if !tc.restarts || err != nil {
						t.Errorf("the watch ended with %v", err)
					}
				default:
					if tc.restarts {
						t.Error("the watch continues with the old credentials")
					}
				}
				stop()
				<-ended
			})
		})
	}
}

func TestUnusableCredentialsKeepTheOldOnes(t *testing.T) {
	for _, tc := range []struct{ rule, file, text, says string }{
		{"the key of another certificate", "client.key", "", "private key does not match"},
		{"no certificate", "client.crt", "nonsense", "failed to find any PEM data"},
		{"an empty CA", "ca.crt", "", "ca.crt is empty"},
		{"no kubeconfig", "kubeconfig", "users: [{name: SECRET", "kubeconfig is not a kubeconfig"},
		{"an empty token", "token", " \n", "token is empty"},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t)
				f := newFiles(t, c)
				o := open(t, c, f)
				text := []byte(tc.text)
				if tc.file == "client.key" {
					_, text = c.authority.leaf(t, "another")
				}
				f.write(t, tc.file, text)
				for range 5 {
					o.reload()
				}
				if len(o.calls) != 1 || !strings.Contains(o.calls[0], tc.says) || strings.Contains(o.calls[0], "SECRET") ||
					strings.Contains(o.calls[0], "PRIVATE") {
					t.Errorf("observed %q, want %q once", o.calls, tc.says)
				}
				if got := o.ask(); got != "first Bearer token-1" {
					t.Errorf("the request was sent as %q", got)
				}
			})
		})
	}
}

func TestFilesAreReadAfterTheyStopChanging(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		f := newFiles(t, c)
		o := open(t, c, f)
		certificate, key := c.authority.leaf(t, "second")
		f.write(t, "client.crt", certificate)
		o.reload()
		f.write(t, "client.key", key)
		o.reload()
		if got := o.ask(); got != "first Bearer token-1" || len(o.calls) != 0 {
			t.Errorf("halfway through: %q, observed %q", got, o.calls)
		}
		o.reload()
		if got := o.ask(); got != "second Bearer token-1" {
			t.Errorf("got %q", got)
		}
	})
}

func TestAnOpenRequestOutlivesItsCredentials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		f := newFiles(t, c)
		o := open(t, c, f)
		answer := make(chan struct{})
		c.answer.Store(&answer)
		done := make(chan error, 1)
		go func() {
			response, err := o.get("/version")
			if err == nil {
				_, err = io.ReadAll(response.Body)
				response.Body.Close()
			}
			done <- err
		}()
		synctest.Wait()
		certificate, key := c.authority.leaf(t, "second")
		f.write(t, "client.crt", certificate)
		f.write(t, "client.key", key)
		o.reload()
		o.reload()
		close(answer)
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestTheServiceAccountOfThePod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		f := newFiles(t, c)
		connection, err := Open(Options{dial: c.dial, pod: func() (*rest.Config, error) {
			return &rest.Config{
				Host: "https://" + host, BearerTokenFile: f.path("token"), BearerToken: "older",
				TLSClientConfig: rest.TLSClientConfig{CAFile: f.path("ca.crt")},
			}, nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { connection.current.Load().retire() }()
		client, err := kubernetes.NewForConfig(connection.Config())
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"Bearer token-1", "Bearer token-2"} {
			f.write(t, "token", []byte(strings.TrimPrefix(want, "Bearer ")))
			connection.reload()
			connection.reload()
			if err := client.RESTClient().Get().AbsPath("/version").Do(t.Context()).Error(); err != nil {
				t.Fatal(err)
			}
			if got := c.last.Load().Header.Get("Authorization"); got != want {
				t.Errorf("the request was sent with %q, want %q", got, want)
			}
		}
	})
}

// withUser returns a kubeconfig whose user has fields.
func withUser(fields string) string {
	return "{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a, user: a}}], " +
		"clusters: [{name: a, cluster: {server: 'https://127.0.0.1:1'}}], users: [{name: a, user: {" + fields + "}}]}"
}

func TestOpenSaysWhatIsWrong(t *testing.T) {
	for _, tc := range []struct{ rule, text, says string }{
		{"no file", "", "read cluster.kubeconfig: open"},
		{"no kubeconfig", "a: [", "is not a kubeconfig"},
		{"no context", "apiVersion: v1\nkind: Config\n", "read cluster.kubeconfig"},
		{
			"an empty client key",
			withUser("client-certificate-data: YQ==, client-key: /dev/null"),
			"read cluster.kubeconfig: the client key: /dev/null",
		},
		{"no certificate", withUser("client-certificate-data: YQ==, client-key-data: YQ=="), "read cluster.kubeconfig: the certificates"},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			f := files{t.TempDir()}
			if tc.text != "" {
				f.write(t, "kubeconfig", []byte(tc.text))
			}
			_, err := Open(Options{Kubeconfig: f.path("kubeconfig"), Field: "cluster.kubeconfig"})
			if err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %v, want %q", err, tc.says)
			}
		})
	}
}
