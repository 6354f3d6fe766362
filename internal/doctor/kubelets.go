package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/node-authorizer/node-authorizer/finding"
	"github.com/node-authorizer/node-authorizer/internal/render"
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

// nodeIdentity checks the usernames of kubelets.
func nodeIdentity(e *examination) {
	k := readRequests(e.cluster)
	k.subjects(e)
	k.mismatches(e)
	k.outsideGroup(e)
	k.administrators(e)
	k.pending(e)
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
	for _, r := range last {
		k.last = append(k.last, r)
	}
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

func (r *CertificateRequest) open() bool { return !r.Approved && !r.Denied && !r.Issued }

func (r *CertificateRequest) at(key string) finding.Place {
	place := r.Place
	place.Key = key
	return place
}

// conforms reports whether a request shows that its kubelet authenticates as the node in the
// subject.
func (r *CertificateRequest) conforms() bool {
	return r.identity().IsNode && r.Requester == r.CommonName
}

// subjects reports requests that no signer of kubelets accepts.
func (k *kubeletRequests) subjects(e *examination) {
	for _, r := range k.unreadable {
		e.found(finding.Finding{
			Code: CSRUnreadable, Severity: finding.Warning, Place: r.at("spec.request"), Subject: r.Requester,
			Message:     fmt.Sprintf("the request of %q cannot be read: %s", r.Requester, r.Unreadable),
			Consequence: "nobody can decide it, and no certificate comes of it",
			Remedy: "find out what sends it; a kubelet does not. Delete it: " +
				shell("kubectl", "delete", "certificatesigningrequest", r.Name),
		})
	}
	for _, group := range byKey(k.malformed, func(r CertificateRequest) string {
		return strings.Join(append([]string{r.Signer, r.Requester, r.CommonName}, r.Organizations...), "\x00")
	}) {
		r := group[0]
		e.found(finding.Finding{
			Code: CertificateSubjectMismatch, Severity: finding.Error, Place: r.at("spec.request"), Subject: r.Requester,
			Message: fmt.Sprintf(
				"%q asks for a certificate with common name %q and organizations %q%s", r.Requester, r.CommonName, r.Organizations,
				times(group),
			),
			Consequence: fmt.Sprintf("the signer %s issues none: it takes the common name %sNAME and the one organization %s",
				r.Signer, nodeidentity.UserPrefix, nodeidentity.Group),
			Remedy: "let the kubelet make the request itself (rotateCertificates, serverTLSBootstrap), " +
				"or give the tool that makes it that subject",
		})
	}
}

// mismatches reports requests for another name than the requester's.
func (k *kubeletRequests) mismatches(e *examination) {
	var mismatched []CertificateRequest
	for _, r := range k.last {
		switch {
		case r.Requester == r.CommonName:
		case r.identity().IsNode:
			e.found(forAnotherNode(r))
		case r.Signer == certificatesv1.KubeletServingSignerName:
			mismatched = append(mismatched, r)
		}
	}
	for _, group := range byKey(mismatched, func(r CertificateRequest) string { return r.Requester }) {
		e.found(requesterMismatch(group))
		if len(group) > 1 {
			e.found(undifferentiated(group))
		}
	}
	var approved []CertificateRequest
	for _, r := range k.wellFormed {
		if r.Signer == certificatesv1.KubeletServingSignerName && r.Requester != r.CommonName && (r.Approved || r.Issued) {
			approved = append(approved, r)
		}
	}
	for _, group := range byKey(approved, func(r CertificateRequest) string { return r.Requester }) {
		e.found(approvedMismatch(group))
	}
}

func forAnotherNode(r CertificateRequest) finding.Finding {
	return finding.Finding{
		Code: CSRForAnotherNode, Severity: finding.Error, Place: r.at("spec.username"), Subject: r.Requester,
		Message:     fmt.Sprintf("%s asks for a certificate in the name of %s", r.Requester, r.CommonName),
		Consequence: "were it approved, one node could act or serve as the other; NodeRestriction would not have let the request in",
		Remedy: "do not approve it; switch on NodeRestriction, and find out what on the node sends it: a changed --hostname-override, " +
			"a disk image with another node's credentials, or an intruder",
	}
}

func requesterMismatch(group []CertificateRequest) finding.Finding {
	r := group[0]
	consequence := "no approver should approve it, as nothing shows that the requester is that node; without a serving certificate " +
		"logs, exec and port-forward fail on the node"
	if !slices.ContainsFunc(group, func(r CertificateRequest) bool { return r.open() }) {
		consequence = "nothing shows that the requester is that node, so whoever has its credential can serve as any node"
	}
	return finding.Finding{
		Code: CSRRequesterMismatch, Severity: finding.Error, Place: r.at("spec.username"), Subject: r.Requester,
		Message: fmt.Sprintf(
			"%q asks for the serving %s of %s", r.Requester, render.Plural(len(group), "certificate", "certificates"), commonNames(group),
		),
		Consequence: consequence,
		Remedy: fmt.Sprintf("give each kubelet a credential of its own, user %sNAME in group %s: "+
			"for AWS roles the username %s{{EC2PrivateDNSName}}, "+
			"else a client certificate by TLS bootstrapping", nodeidentity.UserPrefix, nodeidentity.Group, nodeidentity.UserPrefix),
	}
}

func undifferentiated(group []CertificateRequest) finding.Finding {
	r := group[0]
	return finding.Finding{
		Code: KubeletUndifferentiated, Severity: finding.Error, Place: r.at("spec.username"), Subject: r.Requester,
		Message:     fmt.Sprintf("the kubelets of %d nodes go by one name, %q: %s", len(group), r.Requester, commonNames(group)),
		Consequence: "the Node authorizer and NodeRestriction know none of them as a node: what one may, all may, on every node's objects",
		Remedy: fmt.Sprintf(
			"give each kubelet the name of its node: user %sNAME in group %s", nodeidentity.UserPrefix, nodeidentity.Group,
		),
	}
}

func approvedMismatch(group []CertificateRequest) finding.Finding {
	r := group[0]
	return finding.Finding{
		Code: CSRApprovedMismatch, Severity: finding.Error, Place: r.at("status.conditions"), Subject: r.Requester,
		Message: fmt.Sprintf(
			"serving %s of %s, asked for by %q, %s approved", render.Plural(len(group), "certificate", "certificates"), commonNames(group),
			r.Requester, render.Plural(len(group), "was", "were"),
		),
		Consequence: "whoever approves does not compare the requester with the name: " +
			"who may create requests can have a certificate to serve as any node, and read what is sent to it",
		Remedy: "find who approved in the request's condition, and let only an approver decide that compares, such as node-authorizer's",
	}
}

// outsideGroup reports kubelets with the username of a node that are not in the group.
func (k *kubeletRequests) outsideGroup(e *examination) {
	var outside []CertificateRequest
	for _, r := range k.last {
		if strings.HasPrefix(r.Requester, nodeidentity.UserPrefix) && !r.identity().IsNode {
			outside = append(outside, r)
		}
	}
	for _, group := range byKey(outside, func(r CertificateRequest) string { return r.Requester }) {
		r := group[0]
		e.found(finding.Finding{
			Code: KubeletNotInSystemNodes, Severity: finding.Error, Place: r.at("spec.groups"), Subject: r.Requester,
			Message: fmt.Sprintf("%s is not in group %s, only in %q", r.Requester, nodeidentity.Group, r.Groups),
			Consequence: "to the Node authorizer and NodeRestriction it is no node: " +
				"it has only what RBAC grants, and nothing restricts its writes",
			Remedy: fmt.Sprintf(
				"add the group %s: to the mapping of its AWS role, or as the organization of its client certificate", nodeidentity.Group,
			),
		})
	}
}

// administrators reports kubelets that may do everything. A person may also request a certificate
// manually: a kubelet is recognized by a node's name, or by requests for several nodes.
func (k *kubeletRequests) administrators(e *examination) {
	for _, group := range byKey(k.last, func(r CertificateRequest) string { return r.Requester }) {
		r := group[len(group)-1]
		if !strings.HasPrefix(r.Requester, nodeidentity.UserPrefix) && len(group) < 2 {
			continue
		}
		how, ok := e.cluster.administrator(r.Requester, r.Groups)
		if !ok {
			continue
		}
		e.found(finding.Finding{
			Code: KubeletAdministrator, Severity: finding.Error, Place: r.at("spec.groups"), Subject: r.Requester,
			Message:     fmt.Sprintf("kubelets that go by %q may do everything: %s", r.Requester, how),
			Consequence: "who takes over one node has the whole cluster: the Node authorizer is not even asked",
			Remedy: "take that right away once the Node authorizer is on and the kubelet has a node's name " +
				"(node-authorizer doctor --plan)",
		})
	}
}

// pending reports valid requests that no approver decides.
func (k *kubeletRequests) pending(e *examination) {
	now := e.asOf()
	var waiting []CertificateRequest
	for _, r := range k.wellFormed {
		inForm := r.conforms() || !r.byKubelet()
		if inForm && r.open() && now.Sub(r.Created) > pendingTooLong && !r.Created.IsZero() {
			waiting = append(waiting, r)
		}
	}
	for _, group := range byKey(waiting, func(r CertificateRequest) string { return r.Signer }) {
		r := group[0]
		consequence := "the machines have no credential, and do not join"
		if r.Signer == certificatesv1.KubeletServingSignerName {
			consequence = "kubelets without a serving certificate: logs, exec and port-forward fail on these nodes; " +
				"Kubernetes itself approves none of these requests"
		}
		e.found(finding.Finding{
			Code: CSRPending, Severity: finding.Warning, Place: r.at("status.conditions"), Subject: r.Signer,
			Message: fmt.Sprintf(
				"requests for %s have been waiting for more than an hour, the first since %s: %s", r.Signer,
				r.Created.UTC().Format(time.RFC3339), commonNames(group),
			),
			Consequence: consequence,
			Remedy: "run an approver, such as node-authorizer's, or look at each request and approve it: " +
				shell("kubectl", "certificate", "approve", r.Name),
		})
	}
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

// byKey groups requests by key, sorted by key. Groups keep the order of the requests.
func byKey(requests []CertificateRequest, key func(CertificateRequest) string) [][]CertificateRequest {
	groups := map[string][]CertificateRequest{}
	for _, r := range requests {
		groups[key(r)] = append(groups[key(r)], r)
	}
	keys := make([]string, 0, len(groups))
	for k := range groups {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	sorted := make([][]CertificateRequest, len(keys))
	for i, k := range keys {
		sorted[i] = groups[k]
	}
	return sorted
}

func times(group []CertificateRequest) string {
	if len(group) == 1 {
		return ""
	}
	return fmt.Sprintf(" (%d requests)", len(group))
}

// commonNames returns the requested names without duplicates.
func commonNames(group []CertificateRequest) string {
	names := make([]string, len(group))
	for i, r := range group {
		names[i] = r.CommonName
	}
	slices.Sort(names)
	return some(slices.Compact(names))
}
