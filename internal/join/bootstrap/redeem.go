package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/attest"
	"github.com/node-authorizer/node-authorizer/internal/join/ledger"
)

// Grant is a token for a machine.
type Grant struct {
	Token *ledger.Token
	// Repeated is true if the token existed before this request.
	Repeated bool
}

// redemption is one request for the token of one machine.
type redemption struct {
	*Service
	req *attest.Request
	id  *attest.Identity
	// name is the name of the machine's entry.
	name string
}

// errChanged means that another request changed the ledger or the token at the same time, so
// that this one has to start again.
var errChanged = errors.New("the ledger was changed by another request")

// attempts is how often a request starts again because the ledger changed. Each
// change is progress of another request.
const attempts = 10

// Redeem gives the machine its token. It may be called any number of times, also concurrently
// and by several processes, and after an interrupted call: all calls return one token, until
// it is used or expires. The error is an [*attest.Refusal] if the machine gets no token, and
// any other error if that could not be decided.
func (s *Service) Redeem(ctx context.Context, req *attest.Request, id *attest.Identity) (*Grant, error) {
	if err := checkNames(req.NodeName, id); err != nil {
		return nil, err
	}
	if err := s.options.Known.Fresh(); err != nil {
		return nil, err
	}
	r := &redemption{Service: s, req: req, id: id, name: v1alpha1.EntryName(id.Provider, id.InstanceID)}
	if entry, ok := s.options.Known.Get(r.name); ok && entry.Phase() == v1alpha1.Revoked {
		return nil, revoked(entry)
	}
	if err := r.checkQuarantine(); err != nil {
		return nil, err
	}
	if err := r.checkRegistration(ctx); err != nil {
		return nil, err
	}
	if err := r.checkName(ctx); err != nil {
		return nil, err
	}
	for range attempts {
		if grant, err := r.attempt(ctx); !errors.Is(err, errChanged) {
			return grant, err
		}
	}
	return nil, fmt.Errorf("give %s a token: %w, %d times: try again", r.name, errChanged, attempts)
}

// checkNames compares the requested name with that in the evidence.
func checkNames(asked string, id *attest.Identity) error {
	if problems := validation.IsDNS1123Subdomain(id.NodeName); len(problems) > 0 {
		return attest.Refuse(InvalidNodeName, "by the attestor's naming rule the node name of %s is %.253q: %s",
			id.InstanceID, id.NodeName, problems[0])
	}
	name, err := requestedName(asked)
	if err != nil {
		return err
	}
	if name != id.NodeName && !isShortForm(name, id.NodeName) {
		return attest.Refuse(NameMismatch, "%s asked for node name %s, its evidence says %s", id.InstanceID, name, id.NodeName)
	}
	return nil
}

// isShortForm reports whether a name is the first label of another one. The client of kops'
// node-authorizer asks for the machine's hostname, which is often the first label. The
// requested name is not evidence: the token is for the attested name, and a certificate for
// the short name is denied.
func isShortForm(name, attested string) bool {
	first, _, long := strings.Cut(attested, ".")
	return long && name == first
}

// requestedName returns the requested name in lower case, as kubelet uses it.
func requestedName(asked string) (string, error) {
	name := strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + ('a' - 'A')
		}
		return r
	}, asked)
	if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
		return "", attest.Malformed(InvalidNodeName, "the request is for %.253q: %s", asked, problems[0])
	}
	return name, nil
}

func revoked(entry *v1alpha1.NodeAttestation) *attest.Refusal {
	detail := "nodeattestation " + entry.Name + " is revoked"
	for _, c := range entry.Status.Conditions {
		if c.Type == v1alpha1.ConditionRevoked && c.Message != "" {
			detail += ": " + c.Message
		}
	}
	return attest.Refuse(v1alpha1.AttestationRevoked, "%s", detail)
}

// checkRegistration refuses names of nodes that exist, except the machine's own node if the
// policy may allow that the machine is attested again while its node exists.
func (r *redemption) checkRegistration(ctx context.Context) error {
	if !r.options.VerifyRegistration {
		return nil
	}
	exists, err := r.nodeExists(ctx, r.id.NodeName)
	if err != nil || !exists {
		return err
	}
	refusal := attest.Refuse(AlreadyRegistered, "node %s exists, and %s asks for its name: delete the node if its machine is gone",
		r.id.NodeName, r.id.InstanceID)
	if !r.options.Reattestation.outlivesNode() {
		return refusal
	}
	entry, err := r.options.Ledger.Get(ctx, r.name)
	switch {
	case apierrors.IsNotFound(err):
		return refusal
	case err != nil:
		return err
	case entry.Spec.NodeName != r.id.NodeName:
		return refusal
	}
	return nil
}

func (r *redemption) nodeExists(ctx context.Context, name string) (bool, error) {
	_, err := r.options.Client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("read node %s: %w", name, err)
	}
	return true, nil
}

// checkName refuses the name of another machine. Concurrent requests of two machines may both
// pass; then the approver decides for the older entry.
func (r *redemption) checkName(ctx context.Context) error {
	own, attested := r.options.Known.Get(r.name)
	for _, other := range r.options.Known.ByNode(r.id.NodeName) {
		switch {
		case other.Name == r.name, other.Phase() == v1alpha1.Revoked:
			continue
		case attested && own.Spec.NodeName == r.id.NodeName && v1alpha1.Older(own, other) < 0:
			continue
		}
		gone, err := r.gone(ctx, other)
		if err != nil {
			return err
		}
		if !gone {
			return attest.Refuse(v1alpha1.NameTaken, "%s asked for node name %s, which nodeattestation %s has",
				r.id.InstanceID, r.id.NodeName, other.Name)
		}
		if err := r.release(ctx, other); err != nil {
			return err
		}
	}
	return nil
}
