package token_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/node-authorizer/node-authorizer/internal/aws/iam/token"
	"github.com/node-authorizer/node-authorizer/internal/testing/fakeaws"
)

// counted is a transport that counts requests.
type counted struct {
	http.RoundTripper
	requests atomic.Int64
}

func (c *counted) RoundTrip(r *http.Request) (*http.Response, error) {
	c.requests.Add(1)
	return c.RoundTripper.RoundTrip(r)
}

// cached is a fake AWS with a role to assume, and a file for credentials.
type cached struct {
	*world
	asked  *counted
	alice  fakeaws.Credentials
	file   string
	failed []string
}

func newCached(t *testing.T) *cached { return cachedIn(t, newWorld(t)) }

// cachedIn has its own user and file in an existing fake AWS.
func cachedIn(t *testing.T, w *world) *cached {
	t.Helper()
	c := &cached{
		world: w, asked: &counted{RoundTripper: w.http.Transport}, alice: w.User(account, "alice"),
		file: filepath.Join(t.TempDir(), "kube", "cache", "credentials.json"),
	}
	use(t, c.alice)
	c.world = &world{w.Cloud, &http.Client{Transport: c.asked}}
	return c
}

const cachedRole = "arn:aws:iam::444455556666:role/admin"

// token makes a token and returns the number of requests.
func (c *cached) token(t *testing.T, change func(*token.Options)) (text string, requests int) {
	t.Helper()
	options := token.Options{
		ClusterID: "blue", Region: "eu-west-1", RoleARN: cachedRole, HTTP: c.http, Cache: c.file,
		CacheFailed: func(err error) { c.failed = append(c.failed, err.Error()) },
	}
	if change != nil {
		change(&options)
	}
	before := c.asked.requests.Load()
	text, end, err := token.Make(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	if time.Until(end) < token.MinLife {
		t.Errorf("the token ends at %s", end)
	}
	return text, int(c.asked.requests.Load() - before)
}

func TestCredentialsAreCachedUntilTheyExpire(t *testing.T) {
	c := newCached(t)
	first, asked := c.token(t, nil)
	if asked != 1 {
		t.Errorf("the role was asked for %d times", asked)
	}
	info, err := os.Stat(c.file)
	if err != nil || info.Mode() != 0o600 {
		t.Fatalf("the file has the mode %s, %v", info.Mode(), err)
	}
	if folder, err := os.Stat(filepath.Dir(c.file)); err != nil || folder.Mode().Perm() != 0o700 {
		t.Errorf("its folder has the mode %s, %v", folder.Mode(), err)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(c.file), ".*")); len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
	second, asked := c.token(t, nil)
	if asked != 0 || decoded(t, second).Query().Get("X-Amz-Credential")[:20] != decoded(t, first).Query().Get("X-Amz-Credential")[:20] {
		t.Errorf("asked %d times for the kept credentials", asked)
	}
	if caller := c.caller(t, second); !strings.HasPrefix(caller.ARN, "arn:aws:sts::444455556666:assumed-role/admin/") {
		t.Errorf("the token is of %s", caller.ARN)
	}
	if len(c.failed) > 0 {
		t.Errorf("warned: %v", c.failed)
	}
}

func TestCachedCredentialsAreThoseOfTheSameSettings(t *testing.T) {
	w := newWorld(t)
	for name, change := range map[string]func(*testing.T, *cached, *token.Options){
		"another cluster":     func(_ *testing.T, _ *cached, o *token.Options) { o.ClusterID = "green" },
		"another role":        func(_ *testing.T, _ *cached, o *token.Options) { o.RoleARN = "arn:aws:iam::444455556666:role/other" },
		"another session":     func(_ *testing.T, _ *cached, o *token.Options) { o.SessionName = "ada" },
		"another external id": func(_ *testing.T, _ *cached, o *token.Options) { o.ExternalID = "x1" },
		"another user":        func(t *testing.T, c *cached, _ *token.Options) { use(t, c.User(account, "bob")) },
		"other files": func(t *testing.T, _ *cached, _ *token.Options) {
			t.Setenv("AWS_CONFIG_FILE", filepath.Join(t.TempDir(), "config"))
			if err := os.WriteFile(os.Getenv("AWS_CONFIG_FILE"), []byte("[default]\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		},
		"no cache": func(_ *testing.T, _ *cached, o *token.Options) { o.Cache = "" },
	} {
		t.Run(name, func(t *testing.T) {
			c := cachedIn(t, w)
			c.token(t, nil)
			if _, asked := c.token(t, func(o *token.Options) { change(t, c, o) }); asked != 1 {
				t.Errorf("asked %d times", asked)
			}
		})
	}
}

func TestExpiringCredentialsAreRenewed(t *testing.T) {
	c := newCached(t)
	c.token(t, nil)
	text, err := os.ReadFile(c.file)
	if err != nil {
		t.Fatal(err)
	}
	begin := strings.Index(string(text), `"expires":"`) + len(`"expires":"`)
	end := begin + strings.IndexByte(string(text[begin:]), '"')
	soon := string(text[:begin]) + time.Now().Add(token.MinLife).UTC().Format(time.RFC3339) + string(text[end:])
	if err := os.WriteFile(c.file, []byte(soon), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, asked := c.token(t, nil); asked != 1 {
		t.Errorf("asked %d times", asked)
	}
	if _, asked := c.token(t, nil); asked != 0 {
		t.Errorf("asked %d times after that", asked)
	}
}

func TestCredentialsWithoutExpiryAreNotCached(t *testing.T) {
	c := newCached(t)
	c.token(t, func(o *token.Options) { o.RoleARN = "" })
	if _, err := os.Stat(c.file); !os.IsNotExist(err) {
		t.Errorf("there is a file: %v", err)
	}
}

// TestUnusableCacheFileIsIgnored: the token is made without it, and the file stays
// unchanged.
func TestUnusableCacheFileIsIgnored(t *testing.T) {
	w := newWorld(t)
	for name, test := range map[string]struct {
		text string
		mode os.FileMode
		want string
	}{
		"one that others may read":   {"", 0o640, "can be read by others"},
		"one of another program":     {"clusters:\n  blue: {}\n", 0o600, "was not written by this program"},
		"JSON of another program":    {`{"version": "other"}`, 0o600, "was not written by this program"},
		"one that is much too large": {strings.Repeat(" ", 2<<20), 0o600, "is larger than"},
	} {
		t.Run(name, func(t *testing.T) {
			c := cachedIn(t, w)
			c.file = filepath.Join(t.TempDir(), "file")
			if err := os.WriteFile(c.file, []byte(test.text), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(c.file, test.mode); err != nil {
				t.Fatal(err)
			}
			if _, asked := c.token(t, nil); asked != 1 || len(c.failed) != 1 || !strings.Contains(c.failed[0], test.want) {
				t.Errorf("asked %d times, warned %q, want %q", asked, c.failed, test.want)
			}
			if text, err := os.ReadFile(c.file); err != nil || string(text) != test.text {
				t.Errorf("the file was changed: %v", err)
			}
		})
	}
	t.Run("a folder", func(t *testing.T) {
		c := cachedIn(t, w)
		c.file = t.TempDir()
		if _, asked := c.token(t, nil); asked != 1 || len(c.failed) != 1 || !strings.Contains(c.failed[0], "is not a file") {
			t.Errorf("asked %d times, warned %q", asked, c.failed)
		}
	})
}
