// Command hetzner is a provider for the attestor exec: servers of Hetzner Cloud.
//
// On a server, "hetzner collect" reads the server's id from the metadata service
// (http://169.254.169.254/hetzner/v1/metadata/instance-id, https://docs.hetzner.cloud/#server-metadata). On the service,
// "hetzner attest" looks it up with a token of the project that may only read (GET /v1/servers/ID), and compares the source
// address of the request.
//
// It proves that the request comes from an address of a running server of the project. The id is not signed and is no
// secret, so that it does not prove which process on the server asks, or for which key: keep pods and users away until the
// machine has joined. Whoever can create servers in the project, or rename them, can let a machine join: use a project for
// nodes alone. The service must see the server's own address: no NAT, no proxy.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
)

// The defaults of the addresses, which are arguments in tests.
const (
	metadata = "http://169.254.169.254/hetzner/v1/metadata"
	api      = "https://api.hetzner.cloud/v1"
)

// evidence is what a server shows.
type evidence struct {
	InstanceID int64 `json:"instanceID"`
}

// server is a server in the API.
type server struct {
	ID        int64  `json:"id"`
	Name      string `json:"name"`
	Status    string `json:"status"`
	PublicNet struct {
		IPv4 *struct {
			IP netip.Addr `json:"ip"`
		} `json:"ipv4"`
		IPv6 *struct {
			IP netip.Prefix `json:"ip"`
		} `json:"ipv6"`
	} `json:"public_net"`
	PrivateNet []struct {
		IP netip.Addr `json:"ip"`
	} `json:"private_net"`
}

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err) // nothing is decided
		os.Exit(1)
	}
}

func run(args []string, in io.Reader, out io.Writer) error {
	args = append(args, "", "")
	var response any
	var err error
	switch args[0] {
	case "attest":
		var request v1alpha1.AttestRequest
		if err := read(in, &request, &request.TypeMeta, v1alpha1.AttestRequestKind); err != nil {
			return err
		}
		response, err = attest(&request, or(args[1], api))
	case "collect":
		var request v1alpha1.CollectRequest
		if err := read(in, &request, &request.TypeMeta, v1alpha1.CollectRequestKind); err != nil {
			return err
		}
		response, err = collect(or(args[1], metadata))
	default:
		return fmt.Errorf("want attest or collect, got %q", args[0])
	}
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(response)
}

func or(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

func header(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: v1alpha1.Group + "/" + v1alpha1.Version, Kind: kind}
}

// read reads a request, and ignores fields of later versions.
func read(in io.Reader, into any, got *metav1.TypeMeta, kind string) error {
	if err := json.NewDecoder(in).Decode(into); err != nil {
		return fmt.Errorf("read the request: %w", err)
	}
	if want := header(kind); *got != want {
		return fmt.Errorf("the request is %s of %s, want %s of %s", got.Kind, got.APIVersion, want.Kind, want.APIVersion)
	}
	return nil
}

func collect(from string) (*v1alpha1.CollectResponse, error) {
	id, _, err := get(from+"/instance-id", "")
	if err != nil {
		return nil, err
	}
	name, _, err := get(from+"/hostname", "")
	if err != nil {
		return nil, err
	}
	number, err := strconv.ParseInt(strings.TrimSpace(string(id)), 10, 64)
	if err != nil {
		return nil, fmt.Errorf("read the server's id: %w", err)
	}
	text, err := json.Marshal(evidence{number})
	return &v1alpha1.CollectResponse{
		TypeMeta: header(v1alpha1.CollectResponseKind), NodeName: strings.TrimSpace(string(name)), Evidence: text,
	}, err
}

func attest(request *v1alpha1.AttestRequest, api string) (*v1alpha1.AttestResponse, error) {
	var shown evidence
	if err := json.Unmarshal(request.Evidence, &shown); err != nil || shown.InstanceID <= 0 {
		return refuse("EvidenceMalformed", "the evidence has no instanceID"), nil
	}
	source, err := netip.ParseAddr(request.RemoteAddress)
	if err != nil {
		return nil, fmt.Errorf("read the source address: %w", err)
	}
	token, err := os.ReadFile(os.Getenv("HCLOUD_TOKEN_FILE"))
	if err != nil {
		return nil, fmt.Errorf("read the API token: %w", err)
	}
	text, status, err := get(api+"/servers/"+strconv.FormatInt(shown.InstanceID, 10), strings.TrimSpace(string(token)))
	if status == http.StatusNotFound {
		return refuse("InstanceNotFound", fmt.Sprintf("the project has no server %d", shown.InstanceID)), nil
	}
	if err != nil {
		return nil, err
	}
	var found struct{ Server server }
	if err := json.Unmarshal(text, &found); err != nil || found.Server.ID != shown.InstanceID {
		return nil, fmt.Errorf("the API answers with another document than server %d", shown.InstanceID)
	}
	return decide(&found.Server, source), nil
}

func decide(s *server, source netip.Addr) *v1alpha1.AttestResponse {
	var own []netip.Addr
	if s.PublicNet.IPv4 != nil {
		own = append(own, s.PublicNet.IPv4.IP)
	}
	for _, n := range s.PrivateNet {
		own = append(own, n.IP)
	}
	is := s.PublicNet.IPv6 != nil && s.PublicNet.IPv6.IP.Contains(source)
	id := strconv.FormatInt(s.ID, 10)
	identity := &v1alpha1.AttestedIdentity{InstanceID: id, NodeName: s.Name, ProviderID: "hcloud://" + id}
	for _, address := range own {
		is = is || address == source
		identity.Addresses = append(identity.Addresses, address.String())
	}
	switch {
	case s.Status != "running":
		return refuse("InstanceNotRunning", "the server is "+s.Status)
	case !is:
		return refuse("WrongSourceAddress", source.String()+" is not an address of the server")
	}
	return &v1alpha1.AttestResponse{TypeMeta: header(v1alpha1.AttestResponseKind), Identity: identity}
}

func refuse(code, message string) *v1alpha1.AttestResponse {
	return &v1alpha1.AttestResponse{
		TypeMeta: header(v1alpha1.AttestResponseKind),
		Refusal:  &v1alpha1.AttestRefusal{Code: code, Message: message, Malformed: code == "EvidenceMalformed"},
	}
}

// get follows no redirect, and asks no proxy about metadata. Errors are of answers other than 200 too.
func get(url, token string) (text []byte, status int, err error) {
	request, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return nil, 0, err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	client := &http.Client{
		Timeout: 8 * time.Second, Transport: &http.Transport{},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, 0, err
	}
	defer response.Body.Close()
	text, err = io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("GET %s: %s", url, response.Status)
	}
	return text, response.StatusCode, err
}
