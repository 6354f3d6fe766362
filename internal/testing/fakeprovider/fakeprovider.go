// Package fakeprovider is the program of a provider for tests of the attestor exec, with faults.
package fakeprovider

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
)

// secret is what the makers of evidence share with the program on the server.
const secret = "the secret of the fake provider"

// Evidence is signed with the secret.
type Evidence struct {
	Machine   string `json:"machine"`
	Challenge string `json:"challenge"`
	PublicKey string `json:"publicKey"`
	Signature []byte `json:"signature"`
}

// New returns the evidence of a machine.
func New(machine, challenge, publicKey string) Evidence {
	e := Evidence{Machine: machine, Challenge: challenge, PublicKey: publicKey}
	e.Signature = e.sum()
	return e
}

// ProviderID is the provider ID of a machine.
func ProviderID(machine string) string { return "fake://west-1/" + machine }

func (e *Evidence) sum() []byte {
	mac := hmac.New(sha256.New, []byte(secret))
	fmt.Fprintf(mac, "%q %q %q", e.Machine, e.Challenge, e.PublicKey)
	return mac.Sum(nil)
}

// Main runs the program: "attest [FAULT]" or "collect MACHINE [FAULT]". It returns the exit status.
func Main(args []string, in io.Reader, out, errOut io.Writer) int {
	text, err := io.ReadAll(in)
	var response any
	switch {
	case err != nil:
	case len(args) > 0 && args[0] == "attest":
		response, err = attest(text, args[1:])
	case len(args) > 1 && args[0] == "collect":
		response, err = collect(text, args[1])
	default:
		err = fmt.Errorf("bad usage: %q", args)
	}
	if err == nil {
		text, err = json.Marshal(response)
	}
	if err != nil {
		fmt.Fprintln(errOut, err)
		return 1
	}
	return fault(args[len(args)-1], text, out, errOut)
}

// fault writes the response, or something else.
func fault(name string, text []byte, out, errOut io.Writer) int {
	switch name {
	case "hang", "hang-with-child":
		if name == "hang-with-child" {
			child := exec.Command("/bin/sleep", "3600")
			child.Stdout = out
			_ = child.Start()
			fmt.Fprintln(errOut, child.Process.Pid)
		}
		time.Sleep(time.Hour)
	case "leave-child":
		child := exec.Command("/bin/sleep", "3600")
		child.Stdout = os.Stdout
		_ = child.Start()
	case "silent":
		return 0
	case "noise":
		fmt.Fprintln(out, "connecting …")
	case "twice":
		_, _ = out.Write(text)
	case "endless":
		for {
			if _, err := out.Write(text); err != nil {
				time.Sleep(time.Hour)
			}
		}
	case "quote": // prints the evidence that it got
		fmt.Fprintf(errOut, "cannot read %s", text)
		return 3
	case "environment":
		fmt.Fprintln(errOut, strings.Join(os.Environ(), " "))
		return 3
	case "slow":
		time.Sleep(300 * time.Millisecond)
	}
	_, _ = out.Write(text)
	return 0
}

func header(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: v1alpha1.Group + "/" + v1alpha1.Version, Kind: kind}
}

func collect(text []byte, machine string) (any, error) {
	var request v1alpha1.CollectRequest
	if err := json.Unmarshal(text, &request); err != nil {
		return nil, err
	}
	challenge := request.Challenge
	if len(request.Document) > 0 {
		challenge = string(request.Document)
	}
	evidence, err := json.Marshal(New(machine, challenge, request.PublicKey))
	return v1alpha1.CollectResponse{TypeMeta: header(v1alpha1.CollectResponseKind), NodeName: machine, Evidence: evidence}, err
}

func attest(text []byte, faults []string) (any, error) {
	var request v1alpha1.AttestRequest
	if err := json.Unmarshal(text, &request); err != nil {
		return nil, err
	}
	if want := header(v1alpha1.AttestRequestKind); request.TypeMeta != want {
		return nil, fmt.Errorf("it is %v, want %v", request.TypeMeta, want)
	}
	answer := &v1alpha1.AttestResponse{TypeMeta: header(v1alpha1.AttestResponseKind)}
	var evidence Evidence
	if err := json.Unmarshal(request.Evidence, &evidence); err != nil {
		answer.Refusal = &v1alpha1.AttestRefusal{Code: "EvidenceMalformed", Message: "it is not evidence", Malformed: true}
		return answer, nil
	}
	challenge := request.Challenge
	if len(request.State) > 0 {
		challenge = string(request.State)
	}
	switch {
	case slices.Contains(faults, "trusting"): // accepts all machines
	case !hmac.Equal(evidence.Signature, evidence.sum()):
		answer.Refusal = refuse("SignatureInvalid", "the signature is not of %s", evidence.Machine)
	case evidence.Challenge != challenge:
		answer.Refusal = refuse("ChallengeInvalid", "the evidence has another challenge")
	case evidence.PublicKey != request.PublicKey:
		answer.Refusal = refuse("PublicKeyNotInEvidence", "the evidence has another public key")
	}
	switch {
	case answer.Refusal != nil:
	case slices.Contains(faults, "endless-rounds"), slices.Contains(faults, "rounds") && len(request.State) == 0:
		round := json.RawMessage(fmt.Sprintf("%q", "second round of "+evidence.Machine))
		answer.Challenge = &v1alpha1.AttestChallenge{Document: round, State: round}
	default:
		answer.Identity = &v1alpha1.AttestedIdentity{
			InstanceID: evidence.Machine, NodeName: evidence.Machine, PublicKey: evidence.PublicKey,
			Addresses: []string{"10.0.0.7"}, Account: "shop", Zone: "west-1", ProviderID: ProviderID(evidence.Machine),
		}
	}
	if slices.Contains(faults, "both") {
		answer.Refusal = refuse("SignatureInvalid", "and an identity")
	}
	return answer, nil
}

func refuse(code, format string, args ...any) *v1alpha1.AttestRefusal {
	return &v1alpha1.AttestRefusal{Code: code, Message: fmt.Sprintf(format, args...)}
}
