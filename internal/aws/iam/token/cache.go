package token

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
)

// CacheFile is the environment variable with the path of the file. The default is
// [DefaultCache].
const CacheFile = "NODE_AUTHORIZER_CACHE_FILE"

// DefaultCache returns the path of the file with cached credentials:
// ~/.kube/cache/node-authorizer/credentials.json.
func DefaultCache() (string, error) {
	if path := os.Getenv(CacheFile); path != "" {
		return path, nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("find the cache: %w; set %s", err, CacheFile)
	}
	return filepath.Join(home, ".kube", "cache", "node-authorizer", "credentials.json"), nil
}

const (
	cacheVersion = "node-authorizer-credentials/v1"
	// maxCache is the maximum size of the file in bytes, and maxKept the maximum number
	// of credentials in it.
	maxCache = 1 << 20
	maxKept  = 100
)

// cacheDocument is the content of the file: credentials by the key of their settings.
type cacheDocument struct {
	Version string          `json:"version"`
	Kept    map[string]kept `json:"credentials"`
}

// kept are cached credentials.
type kept struct {
	AccessKeyID     string    `json:"accessKeyID"`
	SecretAccessKey string    `json:"secretAccessKey"`
	SessionToken    string    `json:"sessionToken"`
	Expires         time.Time `json:"expires"`
	// Region is the region that was resolved with them.
	Region string `json:"region"`
}

// Retrieve implements aws.CredentialsProvider.
func (k kept) Retrieve(context.Context) (aws.Credentials, error) {
	return aws.Credentials{
		AccessKeyID: k.AccessKeyID, SecretAccessKey: k.SecretAccessKey, SessionToken: k.SessionToken,
		Source: "cache", CanExpire: true, Expires: k.Expires,
	}, nil
}

// good reports whether the credentials are valid long enough for a token, with a margin
// for clock skew and delays.
func (k kept) good(now time.Time) bool {
	return k.AccessKeyID != "" && k.SecretAccessKey != "" && k.SessionToken != "" && k.Expires.Sub(now) > MinLife+10*time.Second
}

// cache is the file and the key of the requested credentials. A nil cache is always
// empty.
type cache struct {
	path, key string
	document  cacheDocument
}

// openCache reads the file. The error says why it is not used. A missing file is an empty
// cache.
func (o Options) openCache() (*cache, error) {
	if o.Cache == "" || o.Credentials != nil {
		return nil, nil
	}
	key, err := o.key()
	if err != nil {
		return nil, err
	}
	document, err := readCache(o.Cache)
	if err != nil {
		return nil, err
	}
	return &cache{path: o.Cache, key: key, document: document}, nil
}

// find returns the requested credentials if they are valid for long enough.
func (c *cache) find(now time.Time) (kept, bool) {
	if c == nil {
		return kept{}, false
	}
	found := c.document.Kept[c.key]
	return found, found.good(now)
}

// put adds credentials to the file and removes expired ones. Credentials without an
// expiry are not cached: they are in a file of their own.
func (c *cache) put(region string, credentials aws.Credentials, now time.Time) error {
	fresh := kept{
		AccessKeyID: credentials.AccessKeyID, SecretAccessKey: credentials.SecretAccessKey, SessionToken: credentials.SessionToken,
		Expires: credentials.Expires.UTC(), Region: region,
	}
	if !credentials.CanExpire || !fresh.good(now) {
		return nil
	}
	// Another program may have changed the file.
	document, err := readCache(c.path)
	if err != nil {
		return err
	}
	maps.DeleteFunc(document.Kept, func(_ string, k kept) bool { return !k.good(now) })
	document.Kept[c.key] = fresh
	document.shrink()
	text, err := json.Marshal(document)
	if err != nil {
		return fmt.Errorf("writing the cache: %w", err)
	}
	return replace(c.path, text)
}

// shrink keeps the credentials with the latest expiry.
func (d *cacheDocument) shrink() {
	keys := slices.SortedFunc(maps.Keys(d.Kept), func(a, b string) int { return d.Kept[b].Expires.Compare(d.Kept[a].Expires) })
	for _, key := range keys[min(len(keys), maxKept):] {
		delete(d.Kept, key)
	}
}

// readCache reads a file that only its owner may read.
func readCache(path string) (cacheDocument, error) {
	empty := cacheDocument{Version: cacheVersion, Kept: map[string]kept{}}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return empty, nil
	case err != nil:
		return empty, fmt.Errorf("reading the cache: %w", err)
	case !info.Mode().IsRegular():
		return empty, fmt.Errorf("the cache %s is not a file", path)
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0:
		return empty, fmt.Errorf("the cache %s can be read by others: delete it, or chmod 600 it", path)
	}
	file, err := os.Open(path)
	if err != nil {
		return empty, fmt.Errorf("reading the cache: %w", err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxCache+1))
	if err != nil {
		return empty, fmt.Errorf("reading the cache: %w", err)
	}
	document, err := parseCache(text)
	if err != nil {
		return empty, fmt.Errorf("the cache %s %w: delete it, or name another file in %s", path, err, CacheFile)
	}
	return document, nil
}

// parseCache parses the content of the file. Its error does not quote it.
func parseCache(text []byte) (cacheDocument, error) {
	document := cacheDocument{}
	switch {
	case len(text) > maxCache:
		return document, fmt.Errorf("is larger than %d bytes", maxCache)
	case len(bytes.TrimSpace(text)) == 0:
		document.Version = cacheVersion
	case json.Unmarshal(text, &document) != nil || document.Version != cacheVersion:
		return document, errors.New("was not written by this program")
	}
	if document.Kept == nil {
		document.Kept = map[string]kept{}
	}
	return document, nil
}

// replace atomically writes a file that only its owner may read.
func replace(path string, text []byte) (err error) {
	folder := filepath.Dir(path)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return fmt.Errorf("writing the cache: %w", err)
	}
	file, err := os.CreateTemp(folder, ".credentials-*") // mode 0600
	if err != nil {
		return fmt.Errorf("writing the cache: %w", err)
	}
	_, err = file.Write(text)
	if err := errors.Join(err, file.Close()); err != nil {
		return errors.Join(fmt.Errorf("writing the cache: %w", err), os.Remove(file.Name()))
	}
	if err := os.Rename(file.Name(), path); err != nil {
		return errors.Join(fmt.Errorf("writing the cache: %w", err), os.Remove(file.Name()))
	}
	return nil
}

// key returns a digest of everything that credentials depend on: the options, the
// environment, and the files of the SDK.
func (o Options) key() (string, error) {
	digest := sha256.New()
	for _, text := range []string{o.ClusterID, o.Region, o.Profile, o.RoleARN, o.SessionName, o.ExternalID} {
		fmt.Fprintf(digest, "%q\n", text)
	}
	for _, name := range []string{
		"AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION",
		"AWS_ACCESS_KEY_ID", "AWS_ACCESS_KEY", "AWS_ROLE_ARN", "AWS_ROLE_SESSION_NAME", "AWS_WEB_IDENTITY_TOKEN_FILE",
		"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_EC2_METADATA_SERVICE_ENDPOINT",
		"AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_STS",
	} {
		fmt.Fprintf(digest, "%s=%q\n", name, os.Getenv(name))
	}
	files := []string{
		orDefault("AWS_CONFIG_FILE", config.DefaultSharedConfigFilename),
		orDefault("AWS_SHARED_CREDENTIALS_FILE", config.DefaultSharedCredentialsFilename),
	}
	for _, path := range files {
		if err := addFile(digest, path); err != nil {
			return "", fmt.Errorf("the cache is not used: %w", err)
		}
	}
	return hex.EncodeToString(digest.Sum(nil)), nil
}

func orDefault(variable string, otherwise func() string) string {
	if path := os.Getenv(variable); path != "" {
		return path
	}
	return otherwise()
}

// addFile adds the content of a file, which may be missing.
func addFile(digest io.Writer, path string) error {
	fmt.Fprintf(digest, "file %q\n", path)
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a file", path) // a pipe could be read once only
	}
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	n, err := io.Copy(digest, io.LimitReader(file, maxCache+1))
	if err == nil && n > maxCache {
		err = fmt.Errorf("%s is larger than %d bytes", path, maxCache)
	}
	fmt.Fprintf(digest, "\n%d\n", n)
	return err
}
