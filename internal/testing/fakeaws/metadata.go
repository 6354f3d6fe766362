package fakeaws

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Metadata is the instance metadata service of one instance. It requires session tokens
// (IMDSv2).
type Metadata struct {
	*Service

	cloud *Cloud
	id    string

	mu     sync.Mutex
	tokens map[string]time.Time // the end of each session
}

// The headers of the session protocol.
const (
	tokenHeader    = "X-Aws-Ec2-Metadata-Token"
	lifetimeHeader = "X-Aws-Ec2-Metadata-Token-Ttl-Seconds"
)

// Metadata starts a metadata service for an instance. While the instance does not run, it
// closes connections without an answer.
func (c *Cloud) Metadata(id string) (*Metadata, error) {
	m := &Metadata{cloud: c, id: id, tokens: map[string]time.Time{}}
	service, err := serve(m.handle, throttledMetadata)
	if err != nil {
		return nil, err
	}
	m.Service = service
	c.mu.Lock()
	defer c.mu.Unlock()
	c.metadata = append(c.metadata, m)
	return m, nil
}

// Environment returns the variables that make the AWS SDK of a program use this cloud and
// run on this instance: "NAME=VALUE" each.
func (m *Metadata) Environment() []string {
	return append(m.cloud.Environment(), "AWS_EC2_METADATA_SERVICE_ENDPOINT="+m.URL)
}

// Environment returns the variables that make the AWS SDK of a program use this cloud's
// EC2, STS and IAM: "NAME=VALUE" each.
func (c *Cloud) Environment() []string {
	return []string{"AWS_ENDPOINT_URL_EC2=" + c.EC2.URL, "AWS_ENDPOINT_URL_STS=" + c.STS.URL, "AWS_ENDPOINT_URL_IAM=" + c.IAM.URL}
}

func (m *Metadata) handle(w http.ResponseWriter, r *http.Request) {
	instance, ok := m.cloud.Instance(m.id)
	switch {
	case !ok || instance.State != Running && instance.State != Pending:
		panic(http.ErrAbortHandler)
	case r.URL.Path == "/latest/api/token":
		m.openSession(w, r)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		http.Error(w, "405 - Method Not Allowed", http.StatusMethodNotAllowed)
	case !m.inSession(r):
		http.Error(w, "401 - Unauthorized", http.StatusUnauthorized)
	default:
		m.answer(w, r, &instance)
	}
}

// openSession issues a token for the requested number of seconds, from one to six hours.
// Requests through a proxy are refused.
func (m *Metadata) openSession(w http.ResponseWriter, r *http.Request) {
	lifetime, err := strconv.Atoi(r.Header.Get(lifetimeHeader))
	switch {
	case r.Method != http.MethodPut:
		http.Error(w, "405 - Method Not Allowed", http.StatusMethodNotAllowed)
	case r.Header.Get("X-Forwarded-For") != "":
		http.Error(w, "403 - Forbidden", http.StatusForbidden)
	case err != nil || lifetime < 1 || lifetime > 21600:
		http.Error(w, "400 - Bad Request", http.StatusBadRequest)
	default:
		token := randomText(54, base64Digits) + "=="
		m.mu.Lock()
		m.tokens[token] = time.Now().Add(time.Duration(lifetime) * time.Second)
		m.mu.Unlock()
		w.Header().Set(lifetimeHeader, strconv.Itoa(lifetime))
		w.Header().Set("Content-Type", "text/plain")
		_, _ = io.WriteString(w, token)
	}
}

func (m *Metadata) inSession(r *http.Request) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	end, ok := m.tokens[r.Header.Get(tokenHeader)]
	return ok && time.Now().Before(end)
}

func (m *Metadata) answer(w http.ResponseWriter, r *http.Request, instance *Instance) {
	path := strings.TrimSuffix(r.URL.Path, "/")
	text, ok := m.identity(instance, path)
	if !ok {
		text, ok = m.tree(instance)[path]
	}
	if !ok {
		http.Error(w, "404 - Not Found", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "text/plain")
	_, _ = io.WriteString(w, text)
}

// identity returns the document or one of its signatures, made on demand.
func (m *Metadata) identity(i *Instance, path string) (string, bool) {
	switch strings.TrimPrefix(path, "/latest/dynamic/instance-identity") {
	case "":
		return "document\npkcs7\nrsa2048\nsignature", true
	case "/document":
		return string(i.Document()), true
	case "/pkcs7":
		return m.cloud.signer.PKCS7(i.Document(), i.Signed()), true
	case "/rsa2048":
		return m.cloud.signer.RSA2048(i.Document(), i.Signed()), true
	case "/signature":
		return m.cloud.signer.Signature(i.Document()), true
	}
	return "", false
}

// tree returns the instance's metadata, by path.
func (m *Metadata) tree(i *Instance) map[string]string {
	tree := map[string]string{
		"/latest/meta-data/ami-id":                      i.Image,
		"/latest/meta-data/hostname":                    i.PrivateDNSName,
		"/latest/meta-data/instance-id":                 i.ID,
		"/latest/meta-data/instance-type":               i.Type,
		"/latest/meta-data/local-hostname":              i.PrivateDNSName,
		"/latest/meta-data/local-ipv4":                  i.address(),
		"/latest/meta-data/placement/availability-zone": i.Zone,
		"/latest/meta-data/placement/region":            i.Region,
		"/latest/meta-data/services/partition":          partition(i.Region),
	}
	if len(i.Interfaces) > 0 {
		tree["/latest/meta-data/mac"] = i.Interfaces[0].MAC
	}
	i.addNetwork(tree)
	if i.Role != "" {
		m.addCredentials(tree, i)
	}
	return tree
}

func (i *Instance) addNetwork(tree map[string]string) {
	const macs = "/latest/meta-data/network/interfaces/macs"
	var listed []string
	for n, nic := range i.Interfaces {
		listed = append(listed, nic.MAC+"/")
		under := macs + "/" + nic.MAC + "/"
		var private []string
		for _, addr := range nic.Private {
			private = append(private, addr.String())
		}
		tree[under+"device-number"] = strconv.Itoa(n)
		tree[under+"interface-id"] = nic.ID
		tree[under+"local-hostname"] = nic.PrivateDNSName
		tree[under+"local-ipv4s"] = strings.Join(private, "\n")
		tree[under+"owner-id"] = i.Account
		tree[under+"subnet-id"] = i.Subnet
		tree[under+"vpc-id"] = i.VPC
	}
	tree[macs] = strings.Join(listed, "\n")
}

func (m *Metadata) addCredentials(tree map[string]string, i *Instance) {
	credentials := m.cloud.Role(i.ID)
	updated := i.PendingTime.UTC().Format(time.RFC3339)
	tree["/latest/meta-data/iam/info"] = indentedJSON(map[string]string{
		"Code": "Success", "LastUpdated": updated,
		"InstanceProfileArn": i.Profile, "InstanceProfileId": "AIPA0A1B2C3D4E5F60718",
	})
	tree["/latest/meta-data/iam/security-credentials"] = i.Role
	tree["/latest/meta-data/iam/security-credentials/"+i.Role] = indentedJSON(map[string]string{
		"Code": "Success", "LastUpdated": updated, "Type": "AWS-HMAC",
		"AccessKeyId": credentials.AccessKeyID, "SecretAccessKey": credentials.SecretAccessKey,
		"Token": credentials.Token, "Expiration": credentials.Expiration.UTC().Format(time.RFC3339),
	})
}

func indentedJSON(value map[string]string) string {
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		panic(err)
	}
	return string(text)
}

func throttledMetadata(w http.ResponseWriter, _ *http.Request, kind FaultKind) {
	status := map[FaultKind]int{
		Throttled: http.StatusServiceUnavailable, Broken: http.StatusInternalServerError, Forbidden: http.StatusForbidden,
	}[kind]
	http.Error(w, fmt.Sprintf("%d - %s", status, http.StatusText(status)), status)
}
