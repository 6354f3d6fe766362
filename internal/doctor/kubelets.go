package doctor

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/node-authorizer/node-authorizer/internal/finding"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
)

// Codes of findings about the identity of kubelets in their certificate requests. Only requests
// have the authenticated username and groups of a kubelet. Leases and managed fields only have
// names that the client chooses.
const (
	KubeletNotInSystemNodes    finding.Code = "KubeletNotInSystemNodes"
	KubeletUndifferentiated    finding.Code = "KubeletUndifferentiated"
	KubeletAdministrator       finding.Code = "KubeletAdministrator"
	CSRRequesterMismatch       finding.Code = "CSRRequesterMismatch"
	CSRApprovedMismatch        finding.Code = "CSRApprovedMismatch"
	CSRForAnotherNode          finding.Code = "CSRForAnotherNode"
	CSRPending                 finding.Code = "CSRPending"
	CSRUnreadable              finding.Code = "CSRUnreadable"
	CertificateSubjectMismatch finding.Code = "CertificateSubjectMismatch"
	// KubeletNotANode is found in an audit log.
	KubeletNotANode finding.Code = "KubeletNotANode"
)

const resourceRequests = "certificatesigningrequests.certificates.k8s.io"

// pendingTooLong is the age at which a pending request is reported: an approver decides within
// seconds.
const pendingTooLong = time.Hour

func nodeIdentity(e *examination) {
	for _, row := range readRequests(e.cluster).findings(e) {
		for _, group := range grouped(row.requests, row.key) {
			message, consequence, remedy := row.words(group)
			if message == "" {
				continue
			}
			at := group[0].Place
			at.Key = row.field
			e.found(finding.Finding{
				Code: row.code, Severity: row.severity, Place: at, Subject: row.subject(group[0]), Message: message,
				Consequence: consequence, Remedy: remedy,
			})
		}
	}
	e.inLog()
}

// kubeletRequests are the sorted certificate requests of kubelets. The last request of a kubelet
// shows its current username; earlier ones may have other credentials, since fixed.
type kubeletRequests struct {
	unreadable, malformed []CertificateRequest
	// wellFormed have the subject of a node's certificate, the oldest first.
	wellFormed []CertificateRequest
	// last is the last request for each node's serving certificate, and of each node
	// for its own client certificate, sorted by common name and signer.
	last []CertificateRequest
}

func readRequests(c *Cluster) *kubeletRequests {
	k := &kubeletRequests{}
	requests := slices.Clone(c.Requests)
	slices.SortStableFunc(requests, func(a, b CertificateRequest) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Name, b.Name))
	})
	type subject struct{ commonName, signer string }
	last := map[subject]CertificateRequest{}
	for _, r := range requests {
		switch {
		case r.Unreadable != "":
			k.unreadable = append(k.unreadable, r)
		case !r.subjectOfNode():
			k.malformed = append(k.malformed, r)
		default:
			k.wellFormed = append(k.wellFormed, r)
			if r.byKubelet() {
				last[subject{r.CommonName, r.Signer}] = r
			}
		}
	}
	k.last = slices.Collect(maps.Values(last))
	slices.SortFunc(k.last, func(a, b CertificateRequest) int {
		return cmp.Or(cmp.Compare(a.CommonName, b.CommonName), cmp.Compare(a.Signer, b.Signer))
	})
	return k
}

// subjectOfNode reports whether the kubelets' signers accept the subject.
// Source: https://kubernetes.io/docs/reference/access-authn-authz/certificate-signing-requests/#kubernetes-signers
func (r *CertificateRequest) subjectOfNode() bool {
	name, ok := strings.CutPrefix(r.CommonName, nodeidentity.UserPrefix)
	return ok && name != "" && slices.Equal(r.Organizations, []string{nodeidentity.Group})
}

// byKubelet reports whether the kubelet made the request with its normal credential. It does so
// for every serving certificate. It requests its first client certificate with a credential that
// is valid only for that.
func (r *CertificateRequest) byKubelet() bool {
	return r.Signer == certificatesv1.KubeletServingSignerName || strings.HasPrefix(r.Requester, nodeidentity.UserPrefix)
}

func (r *CertificateRequest) identity() nodeidentity.Identity {
	return nodeidentity.Of(r.Requester, r.Groups)
}

func (r *CertificateRequest) node() string {
	return strings.TrimPrefix(r.CommonName, nodeidentity.UserPrefix)
}

func (r *CertificateRequest) open() bool { return !r.Approved && !r.Denied && !r.Issued }

func (r *CertificateRequest) conforms() bool {
	return r.identity().IsNode && r.Requester == r.CommonName
}

// requestFinding is a row of the table of findings about certificate requests.
type requestFinding struct {
	code     finding.Code
	severity finding.Severity
	// field is the field of the first request of a group, whose subject the finding is about.
	field    string
	subject  func(CertificateRequest) string
	requests []CertificateRequest
	// key returns what the requests of a group share.
	key func(CertificateRequest) string
	// words returns an empty message for a group without a finding.
	words func(group []CertificateRequest) (message, consequence, remedy string)
}

const (
	notANode = "to the Node authorizer and NodeRestriction it is not a node: " +
		"it has only what RBAC grants, and nothing restricts its writes"
	ownName = "give each kubelet the name of its node: user " + nodeidentity.UserPrefix + "NAME in group " + nodeidentity.Group
)

func (k *kubeletRequests) findings(e *examination) []requestFinding {
	name := func(r CertificateRequest) string { return r.Name }
	requester := func(r CertificateRequest) string { return r.Requester }
	signer := func(r CertificateRequest) string { return r.Signer }
	whole := func(r CertificateRequest) string {
		return strings.Join(append([]string{r.Signer, r.Requester, r.CommonName}, r.Organizations...), "\x00")
	}
	now := e.asOf()
	forOthers := selected(k.last, func(r CertificateRequest) bool { return r.Requester != r.CommonName && r.identity().IsNode })
	mismatched := selected(k.last, func(r CertificateRequest) bool { return r.otherServing() && !r.identity().IsNode })
	approved := selected(k.wellFormed, func(r CertificateRequest) bool { return r.otherServing() && (r.Approved || r.Issued) })
	outside := selected(k.last, func(r CertificateRequest) bool {
		return strings.HasPrefix(r.Requester, nodeidentity.UserPrefix) && !r.identity().IsNode
	})
	waiting := selected(k.wellFormed, func(r CertificateRequest) bool {
		inForm := r.conforms() || !r.byKubelet()
		return inForm && r.open() && now.Sub(r.Created) > pendingTooLong && !r.Created.IsZero()
	})
	return []requestFinding{
		{CSRUnreadable, finding.Warning, "spec.request", requester, k.unreadable, name, unreadable},
		{CertificateSubjectMismatch, finding.Error, "spec.request", requester, k.malformed, whole, subjectMismatch},
		{CSRForAnotherNode, finding.Error, "spec.username", requester, forOthers, name, forAnotherNode},
		{CSRRequesterMismatch, finding.Error, "spec.username", requester, mismatched, requester, requesterMismatch},
		{KubeletUndifferentiated, finding.Error, "spec.username", requester, mismatched, requester, undifferentiated},
		{CSRApprovedMismatch, finding.Error, "status.conditions", requester, approved, requester, approvedMismatch},
		{KubeletNotInSystemNodes, finding.Error, "spec.groups", requester, outside, requester, outsideGroup},
		{KubeletAdministrator, finding.Error, "spec.groups", requester, k.last, requester, e.cluster.administrators},
		{CSRPending, finding.Warning, "status.conditions", signer, waiting, signer, pending},
	}
}

func selected[T any](list []T, which func(T) bool) []T {
	return slices.DeleteFunc(slices.Clone(list), func(x T) bool { return !which(x) })
}

func (r *CertificateRequest) otherServing() bool {
	return r.Requester != r.CommonName && r.Signer == certificatesv1.KubeletServingSignerName
}

func unreadable(group []CertificateRequest) (message, consequence, remedy string) {
	r := group[0]
	return fmt.Sprintf("the request of %q cannot be read: %s", r.Requester, r.Unreadable),
		"nobody can decide it, and it never gets a certificate",
		"find out what sends it; a kubelet does not. Delete it: " + shell("kubectl", "delete", "certificatesigningrequest", r.Name)
}

func subjectMismatch(group []CertificateRequest) (message, consequence, remedy string) {
	r, times := group[0], ""
	if len(group) > 1 {
		times = fmt.Sprintf(" (%d requests)", len(group))
	}
	return fmt.Sprintf("%q asks for a certificate with common name %q and organizations %q%s",
			r.Requester, r.CommonName, r.Organizations, times),
		fmt.Sprintf("the signer %s issues none: it takes the common name %sNAME and the one organization %s",
			r.Signer, nodeidentity.UserPrefix, nodeidentity.Group),
		"let the kubelet make the request itself (rotateCertificates, serverTLSBootstrap), or give the tool that makes it that subject"
}

func forAnotherNode(group []CertificateRequest) (message, consequence, remedy string) {
	return fmt.Sprintf("%s asks for a certificate in the name of %s", group[0].Requester, group[0].CommonName),
		"were it approved, one node could act or serve as the other; NodeRestriction would not have let the request in",
		"do not approve it; switch on NodeRestriction, and find out what on the node sends it: a changed --hostname-override, " +
			"a disk image with another node's credentials, or an intruder"
}

func requesterMismatch(group []CertificateRequest) (message, consequence, remedy string) {
	consequence = "no approver should approve it, as nothing shows that the requester is that node; without a serving certificate " +
		"logs, exec and port-forward fail on the node"
	if !slices.ContainsFunc(group, func(r CertificateRequest) bool { return r.open() }) {
		consequence = "nothing shows that the requester is that node, so whoever has its credential can serve as any node"
	}
	return fmt.Sprintf("%q asks for the serving %s of %s", group[0].Requester, certificates(group), commonNames(group)),
		consequence,
		fmt.Sprintf("give each kubelet a credential of its own, user %sNAME in group %s: for AWS roles the username %s, "+
			"else a client certificate by TLS bootstrapping", nodeidentity.UserPrefix, nodeidentity.Group, nodeUsername)
}

func undifferentiated(group []CertificateRequest) (message, consequence, remedy string) {
	if len(group) < 2 {
		return "", "", ""
	}
	return fmt.Sprintf("the kubelets of %d nodes go by one name, %q: %s", len(group), group[0].Requester, commonNames(group)),
		"the Node authorizer and NodeRestriction know none of them as a node: what one may, all may, on every node's objects",
		ownName
}

func approvedMismatch(group []CertificateRequest) (message, consequence, remedy string) {
	return fmt.Sprintf("serving %s of %s, asked for by %q, %s approved", certificates(group), commonNames(group),
			group[0].Requester, render.Plural(len(group), "was", "were")),
		"whoever approves does not compare the requester with the name: " +
			"a user who may create requests can have a certificate to serve as any node, and read the requests to it",
		"find who approved in the request's condition, and let only an approver decide that compares, such as node-authorizer's"
}

func outsideGroup(group []CertificateRequest) (message, consequence, remedy string) {
	return fmt.Sprintf("%s is not in group %s, only in %q", group[0].Requester, nodeidentity.Group, group[0].Groups), notANode,
		"add the group " + nodeidentity.Group + ": to the mapping of its AWS role, or as the organization of its client certificate"
}

// administrators reports kubelets that may do everything. A person may also request a certificate
// manually: a kubelet is recognized by a node's name, or by requests for several nodes.
func (c *Cluster) administrators(group []CertificateRequest) (message, consequence, remedy string) {
	r := group[len(group)-1]
	if !strings.HasPrefix(r.Requester, nodeidentity.UserPrefix) && len(group) < 2 {
		return "", "", ""
	}
	how, ok := c.administrator(r.Requester, r.Groups)
	if !ok {
		return "", "", ""
	}
	return fmt.Sprintf("kubelets that go by %q may do everything: %s", r.Requester, how),
		"who takes over one node has the whole cluster: the Node authorizer is not even asked",
		"take that right away once the Node authorizer is on and the kubelet has a node's name (node-authorizer doctor --plan)"
}

func pending(group []CertificateRequest) (message, consequence, remedy string) {
	r := group[0]
	consequence = "the machines have no credential, and do not join"
	if r.Signer == certificatesv1.KubeletServingSignerName {
		consequence = "kubelets without a serving certificate: logs, exec and port-forward fail on these nodes; " +
			"Kubernetes itself approves none of these requests"
	}
	return fmt.Sprintf("requests for %s have been waiting for more than an hour, the first since %s: %s", r.Signer,
			r.Created.UTC().Format(time.RFC3339), commonNames(group)),
		consequence,
		"run an approver, such as node-authorizer's, or look at each request and approve it: " +
			shell("kubectl", "certificate", "approve", r.Name)
}

// asOf returns the time of the cluster's state. For files it is the time of the latest request in
// them, because files may be old.
func (e *examination) asOf() time.Time {
	if e.cluster.Live && !e.options.Now.IsZero() {
		return e.options.Now
	}
	var latest time.Time
	for _, r := range e.cluster.Requests {
		if r.Created.After(latest) {
			latest = r.Created
		}
	}
	return latest
}

// grouped groups a list by key, in the order of the first of each key.
func grouped[T any](list []T, key func(T) string) [][]T {
	groups := map[string]int{}
	var all [][]T
	for _, x := range list {
		i, known := groups[key(x)]
		if !known {
			i = len(all)
			groups[key(x)], all = i, append(all, nil)
		}
		all[i] = append(all[i], x)
	}
	return all
}

func certificates(group []CertificateRequest) string {
	return render.Plural(len(group), "certificate", "certificates")
}

func commonNames(group []CertificateRequest) string {
	names := make([]string, len(group))
	for i, r := range group {
		names[i] = r.CommonName
	}
	slices.Sort(names)
	return some(slices.Compact(names))
}
