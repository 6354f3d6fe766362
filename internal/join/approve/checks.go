package approve

import (
	"fmt"
	"slices"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"

	policyv1alpha1 "github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// check is one condition that requests of some kinds have to meet.
type check struct {
	kinds []Kind
	code  verdict.Code
	rule  string
	// facts is true if the check needs more than the request.
	facts bool
	// test returns nil if the check passes.
	test func(*subject) *failure
}

func (c *check) of(kind Kind) bool { return slices.Contains(c.kinds, kind) }

// failure says why a check failed.
type failure struct {
	outcome Outcome
	message string
	// missing are the facts that are needed to decide; nil if they are known.
	missing *Missing
}

func denied(format string, args ...any) *failure {
	return &failure{outcome: Deny, message: fmt.Sprintf(format, args...)}
}

// deniedIf returns a denial with a message, or nil if the message is empty.
func deniedIf(prefix, message string) *failure {
	if message == "" {
		return nil
	}
	return denied("%s%s", prefix, message)
}

// checks are all checks. For each kind, the first three make the request readable for the
// checks that follow.
var checks = []check{
	{
		kinds: []Kind{Client}, code: WrongSigner,
		rule: "a bootstrap token gets certificates of signer kubernetes.io/kube-apiserver-client-kubelet only",
		test: func(s *subject) *failure {
			if s.Request.Spec.SignerName != certificatesv1.KubeAPIServerClientKubeletSignerName {
				return denied("a bootstrap token asks for a certificate of signer %s", s.Request.Spec.SignerName)
			}
			return nil
		},
	},
	{
		kinds: []Kind{Client, Renewal, Serving}, code: CSRMalformed,
		rule: "the request is one PEM block with one PKCS#10 request and nothing else",
		test: func(s *subject) *failure {
			parsed, err := parse(s.Request.Spec.Request)
			if err != nil {
				return denied("the request is malformed: %v", err)
			}
			s.request = parsed
			return nil
		},
	},
	{
		kinds: []Kind{Client, Renewal, Serving}, code: WeakKey,
		rule: "the key is RSA of 2048 to 8192 bits, ECDSA on P-256, P-384 or P-521, or Ed25519, and signs with SHA-256 or better",
		test: func(s *subject) *failure {
			if weak := Weakness(s.request.PublicKey); weak != "" {
				return deniedIf("the key is not accepted: ", weak)
			}
			return deniedIf("the key is not accepted: ", weakSignature(s.request.SignatureAlgorithm))
		},
	},
	{
		kinds: []Kind{Client, Renewal, Serving}, code: CSRMalformed,
		rule: "the request is signed with its own key",
		test: func(s *subject) *failure {
			if err := s.request.CheckSignature(); err != nil {
				return denied("the request is not signed with its own key")
			}
			return nil
		},
	},
	{
		kinds: []Kind{Client, Renewal, Serving}, code: WrongSubject,
		rule: "the subject is one organization, system:nodes, and one common name, system:node:NAME",
		test: func(s *subject) *failure {
			organization, commonName, err := s.request.subject()
			switch {
			case err != nil:
				return denied("the subject is not a node's: %v", err)
			case organization != nodeidentity.Group:
				return denied("the organization is %s, want %q", quote(organization), nodeidentity.Group)
			case !strings.HasPrefix(commonName, nodeidentity.UserPrefix) || commonName == nodeidentity.UserPrefix:
				return denied("the common name is %s, want %s and the node's name", quote(commonName), nodeidentity.UserPrefix)
			}
			s.commonName = commonName
			return nil
		},
	},
	{
		kinds: []Kind{Client, Renewal, Serving}, code: ExtensionsNotAllowed,
		rule: "the request asks for no extension but subject alternative names",
		test: func(s *subject) *failure {
			if len(s.request.extensions) > 0 {
				return denied("the request asks for the extensions %s", listed(s.request.extensions, len(s.request.extensions)))
			}
			return nil
		},
	},
	{
		kinds: []Kind{Client, Renewal}, code: SubjectAltNamesNotAllowed,
		rule: "a client certificate has no subject alternative names",
		test: func(s *subject) *failure {
			if !s.request.names.empty() {
				return denied("the client certificate would have the subject alternative names %s", &s.request.names)
			}
			return nil
		},
	},
	{
		kinds: []Kind{Serving}, code: SubjectAltNamesNotAllowed,
		rule: "a serving certificate has DNS names and IP addresses only, and one of them at least",
		test: func(s *subject) *failure {
			switch names := &s.request.names; {
			case len(names.otherNames) > 0:
				return denied("the serving certificate would have %s", listed(names.otherNames, len(names.otherNames)))
			case names.empty():
				return denied("the serving certificate would have neither a DNS name nor an IP address")
			}
			return nil
		},
	},
	{
		kinds: []Kind{Client, Renewal}, code: WrongUsages,
		rule: "the usages are digital signature, client auth and optionally key encipherment",
		test: func(s *subject) *failure { return s.usages(certificatesv1.UsageClientAuth) },
	},
	{
		kinds: []Kind{Serving}, code: WrongUsages,
		rule: "the usages are digital signature, server auth and optionally key encipherment",
		test: func(s *subject) *failure { return s.usages(certificatesv1.UsageServerAuth) },
	},
	{
		kinds: []Kind{Renewal, Serving}, code: WrongNodeName,
		rule: "the common name is the user name of the node that asks",
		test: func(s *subject) *failure {
			if s.commonName != s.Request.Spec.Username {
				return denied("node %s asks for a certificate for %s", quote(s.claim.Node), quote(s.commonName))
			}
			return nil
		},
	},
	{
		kinds: []Kind{Client}, code: v1alpha1.AttestationRevoked,
		rule:  "the machine is not revoked",
		facts: true,
		test: func(s *subject) *failure {
			if s.Entry != nil && s.Entry.Phase() == v1alpha1.Revoked {
				return denied("NodeAttestation %s is revoked", s.Entry.Name)
			}
			return nil
		},
	},
	{
		kinds: []Kind{Client}, code: TokenUnknown,
		rule:  "exactly one entry of the ledger names the token, and as its current one",
		facts: true,
		test: func(s *subject) *failure {
			switch {
			case s.Entry == nil || !s.Entry.NamesToken(s.claim.TokenID):
				return denied("no NodeAttestation names bootstrap token %s", s.claim.TokenID)
			case s.Shared:
				return denied("more than one NodeAttestation names bootstrap token %s", s.claim.TokenID)
			case s.Entry.DeletionTimestamp != nil:
				return denied("NodeAttestation %s, which names bootstrap token %s, is being deleted", s.Entry.Name, s.claim.TokenID)
			case s.Entry.Spec.TokenID != s.claim.TokenID:
				return denied("NodeAttestation %s names another bootstrap token now", s.Entry.Name)
			}
			return nil
		},
	},
	{
		kinds: []Kind{Client, Renewal, Serving}, code: policyv1alpha1.NodeQuarantined,
		rule:  "the node is not quarantined",
		facts: true,
		test: func(s *subject) *failure {
			if s.NodeQuarantine != "" {
				return denied("node %s is quarantined", s.node())
			}
			return nil
		},
	},
	{
		kinds: []Kind{Client, Renewal, Serving}, code: policyv1alpha1.CredentialQuarantined,
		rule:  "the credential with which the request was made is not quarantined",
		facts: true,
		test: func(s *subject) *failure {
			if s.CredentialQuarantine != "" {
				return denied("the credential with which the request was made is quarantined")
			}
			return nil
		},
	},
	{
		kinds: []Kind{Client}, code: TokenExpired,
		rule:  "the token has not expired, or was bound to this request before it did, 15 minutes ago at most",
		facts: true,
		test: func(s *subject) *failure {
			if !s.Now.Before(s.Entry.Spec.TokenExpiration.Time) && !s.namedByBinding() {
				return denied("bootstrap token %s has expired", s.claim.TokenID)
			}
			return nil
		},
	},
	{
		kinds: []Kind{Client}, code: WrongNodeName,
		rule:  "the common name is of the node that the machine was attested as",
		facts: true,
		test: func(s *subject) *failure {
			if s.commonName != nodeidentity.UserPrefix+s.Entry.Spec.NodeName {
				return denied("the machine was attested as node %s and asks for a certificate for %s",
					quote(s.Entry.Spec.NodeName), quote(s.commonName))
			}
			return nil
		},
	},
	{
		kinds: []Kind{Client}, code: KeyNotAttested,
		rule:  "the key is the one that the machine's evidence names, if it names one",
		facts: true,
		test: func(s *subject) *failure {
			if s.Entry.Spec.PublicKey != "" && s.request.publicKey() != s.Entry.Spec.PublicKey {
				return denied("the machine was attested with another key")
			}
			return nil
		},
	},
	{
		kinds: []Kind{Client}, code: TokenAlreadyUsed,
		rule:  "the token has not been used for another key",
		facts: true,
		test: func(s *subject) *failure {
			if s.usedForAnother(s.request.publicKey()) {
				return denied("bootstrap token %s was used for another key", s.claim.TokenID)
			}
			return nil
		},
	},
	{
		kinds: []Kind{Client}, code: v1alpha1.NameTaken,
		rule:  "no other machine has the node's name",
		facts: true,
		test: func(s *subject) *failure {
			if other := s.rival(); other != nil {
				return denied("node %s is the machine of NodeAttestation %s", quote(s.Entry.Spec.NodeName), other.Name)
			}
			return nil
		},
	},
	{
		kinds: []Kind{Renewal, Serving}, code: v1alpha1.AttestationRevoked,
		rule:  "the node's machine is not revoked",
		facts: true,
		test: func(s *subject) *failure {
			if _, revoked := s.holder(); revoked {
				return denied("every NodeAttestation of node %s is revoked", printable(s.claim.Node))
			}
			return nil
		},
	},
	{
		kinds: []Kind{Renewal, Serving}, code: NotAttested,
		rule:  "the ledger has the node, unless unattested nodes are approved",
		facts: true,
		test:  (*subject).attested,
	},
	{
		kinds: []Kind{Renewal, Serving}, code: AnotherMachinesCredential,
		rule:  "the client certificate of the request cannot belong to another machine of the node's name",
		facts: true,
		test:  (*subject).credentialOfAnother,
	},
	{
		kinds: []Kind{Serving}, code: AddressNotAttested,
		rule:  "every name and address is one of the node's",
		facts: true,
		test:  (*subject).ownAddresses,
	},
	{
		kinds: []Kind{Serving}, code: NamesNotVouched,
		rule:  "for a node that was never attested: one source vouches for every name and address",
		facts: true,
		test:  (*subject).vouched,
	},
	{
		kinds: []Kind{Serving}, code: SelfNodeServerNotAllowed,
		rule:  "the node may create certificatesigningrequests/selfnodeserver",
		facts: true,
		test: func(s *subject) *failure {
			if !s.SelfNodeServer {
				return denied("%s may not create certificatesigningrequests/selfnodeserver", printable(s.Request.Spec.Username))
			}
			return nil
		},
	},
}

// usages requires digital signature and the given usage, and allows key encipherment.
func (s *subject) usages(auth certificatesv1.KeyUsage) *failure {
	var missing, extra []string
	for _, want := range []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, auth} {
		if !slices.Contains(s.Request.Spec.Usages, want) {
			missing = append(missing, string(want))
		}
	}
	for _, u := range s.Request.Spec.Usages {
		if u != certificatesv1.UsageDigitalSignature && u != auth && u != certificatesv1.UsageKeyEncipherment {
			extra = append(extra, string(u))
		}
	}
	slices.Sort(extra)
	wrong := []string{}
	if len(missing) > 0 {
		wrong = append(wrong, "lack "+strings.Join(missing, ", "))
	}
	if len(extra) > 0 {
		wrong = append(wrong, "contain "+quote(strings.Join(slices.Compact(extra), ", "))+", which no kubelet asks for")
	}
	if len(wrong) == 0 {
		return nil
	}
	return denied("the usages %s", strings.Join(wrong, " and "))
}

// BoundRequestLife is how long the request that a token was bound to may be approved. A
// kubelet does not wait longer for its certificate.
const BoundRequestLife = 15 * time.Minute

// namedByBinding reports whether the token was bound to this request and its key before it
// expired, and not more than BoundRequestLife ago.
func (s *subject) namedByBinding() bool {
	b := s.Entry.Status.Binding
	return b != nil && s.Entry.BoundKey() == s.request.publicKey() &&
		b.RequestUID != "" && b.RequestUID == s.Request.UID &&
		b.ApproveUntil != nil && s.Now.Before(b.ApproveUntil.Time)
}

// usedForAnother reports whether the token was used for a certificate for another key, or is
// about to be. A certificate for an unknown key counts as one for another key.
func (s *subject) usedForAnother(key string) bool {
	keys := s.Approved
	if bound := s.Entry.BoundKey(); bound != "" {
		keys = append(slices.Clone(keys), bound)
	}
	if len(keys) == 0 {
		return s.Entry.Phase() != v1alpha1.Issued
	}
	return slices.ContainsFunc(keys, func(used string) bool { return used != key })
}

func (s *subject) attested() *failure {
	if entry, _ := s.holder(); entry != nil || s.bySources() {
		return nil
	}
	missing := denied("the ledger has no NodeAttestation of node %s", printable(s.claim.Node))
	switch s.Unattested {
	case ApproveUnattested:
		if s.claim.Kind == Renewal || s.ServingAddresses == ServingLedgerAndNode {
			return nil
		}
		missing.outcome = Leave
		missing.message += ", so that none of its addresses is attested"
	case LeaveUnattested:
		missing.outcome = Leave
	case DenyUnattested:
	}
	return missing
}
