package noderestriction

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/node-authorizer/node-authorizer/verdict"
)

// Remedy returns what to change so that NodeRestriction allows a write that it refuses, as far as
// it is decided without the open parts: the object that is written, the request, the state, a
// feature gate, or RBAC, which counts if it is among the authorizers. It is the zero Remedy for
// a write that is allowed. It costs much more than an answer, and copies the object.
func (r *Restriction) Remedy(ctx context.Context, req *Request, open Open) verdict.Remedy {
	d := &draft{Restriction: r, ctx: ctx, req: *req}
	if req.Object != nil {
		d.req.Object = req.Object.DeepCopyObject()
	}
	why := ""
	for range maxSteps {
		answer, _ := d.Consider(ctx, &d.req, open)
		if answer.Decision == verdict.Allow {
			changes := append(d.changes, d.objectChanges(req.Object)...)
			return verdict.Remedy{Changes: changes, Warning: strings.Join(d.warnings, "; ")}
		}
		why = answer.Reason.Message
		if remedy := remedies[answer.Code]; remedy != nil {
			remedy(d, answer)
		}
		if d.none != "" {
			break
		}
	}
	return verdict.Remedy{None: cmp.Or(d.none, why)}
}

// maxSteps bounds how many checks of a rule fail one after the other.
const maxSteps = 16

// remedies has the remedy for each code of a refusal. After a change the remaining checks are
// made, whose remedies follow.
var remedies = map[verdict.Code]func(*draft, Answer){
	UnnamedNode:           none("a credential of the user system:node: names no node: the kubelet needs one with its node's name"),
	OperationNotAllowed:   (*draft).neverWrites,
	SubresourceNotAllowed: (*draft).neverWrites,
	FeatureDisabled:       (*draft).turnOn,
	UnexpectedObject:      none("without an object of a kind and version that NodeRestriction reads, it refuses the request"),

	NotAMirrorPod:              onObject(makeMirror),
	OwnerNotThisNode:           (*draft).ownByNode,
	OwnerNotController:         (*draft).ownByNode,
	OwnerBlocksDeletion:        (*draft).ownByNode,
	NodeNotFound:               (*draft).nodeFirst,
	NodeUIDMismatch:            (*draft).useNodeUID,
	MirrorPodRefersToObject:    (*draft).dropReferences,
	PodNameRequired:            none("the request must name a pod of the node, and only the caller knows which one is meant"),
	PodNotFound:                (*draft).podFirst,
	PodUIDMismatch:             (*draft).usePodUID,
	PodNotOnNode:               (*draft).bindPod,
	PodLabelsChanged:           onBoth(restorePodLabels),
	ResourceClaimStatusChanged: onBoth(restoreClaimStatuses),

	WritesOtherNode:        (*draft).nameSelfOnCreate,
	ConfigSourceSet:        onObject(dropConfigSource),
	TaintsChanged:          onBoth(restoreTaints),
	OwnerReferencesChanged: onBoth(restoreOwners),
	LabelNotAllowed:        (*draft).restoreLabels,
	ClaimChanged:           (*draft).restoreClaim,

	TokenNotBoundToPod:         (*draft).bindToken,
	OneAudienceOnly:            (*draft).oneAudience,
	AudienceNotAllowed:         (*draft).grantAudience,
	AudienceLookupFailed:       (*draft).lookupFirst,
	AuthorizationFailed:        (*draft).grantAsked,
	CertificateForOtherNode:    (*draft).certificateHere,
	CertificateForMirrorPod:    none("mirror pods get no certificates, with any right: run the pod as an ordinary one"),
	PodUsesOtherServiceAccount: (*draft).useAccount,
	ServiceAccountNotFound:     none("the service account must exist first, and its uid is part of the request"),
	ServiceAccountUIDMismatch:  (*draft).useAccountUID,
	SignerNotAllowed:           (*draft).grantSigner,
	SigningRequestNotReadable:  (*draft).signAgain,
	SigningRequestForOtherName: (*draft).signAgain,

	NotLeaseNamespace:   (*draft).useLeaseNamespace,
	NotOwnLease:         (*draft).nameSelf,
	NotOwnCSINode:       (*draft).nameSelf,
	CSINodeSpecChanged:  onBoth(restoreCSINodeSpec),
	NotOwnResourceSlice: (*draft).sliceHere,
}

// draft is a remedy that is being made, with the request, the state, the authorizer and the
// features as changed so far.
type draft struct {
	*Restriction
	ctx      context.Context
	req      Request
	changes  []verdict.Change // except changes of the object
	warnings []string
	none     string
}

// none returns the remedy that nothing can be changed.
func none(why string) func(*draft, Answer) {
	return func(d *draft, _ Answer) { d.none = why }
}

// onObject returns the remedy that changes the object.
func onObject[T any, P typed[T]](change func(P)) func(*draft, Answer) {
	return func(d *draft, _ Answer) {
		if o, ok := as[T, P](d.req.Object); ok {
			change(o)
		}
	}
}

// onBoth returns the remedy that changes the object as the old one says.
func onBoth[T any, P typed[T]](change func(from, to P)) func(*draft, Answer) {
	return func(d *draft, _ Answer) {
		from, ok := as[T, P](d.req.OldObject)
		to, fits := as[T, P](d.req.Object)
		if ok && fits {
			change(from, to)
		}
	}
}

// set records the change of an attribute of the request.
func (d *draft) set(attribute string, of *string, value string) {
	if *of == value {
		return
	}
	op := verdict.Replace
	if *of == "" {
		op = verdict.Add
	}
	*of = value
	d.changes = append(d.changes, verdict.Change{
		Of: verdict.OfRequest, Op: op, Path: verdict.RequestPath + "/" + attribute, Value: encoded(value),
	})
}

func encoded(value any) json.RawMessage {
	text, err := json.Marshal(value)
	if err != nil {
		panic("noderestriction: a value cannot be encoded: " + err.Error()) // values come from JSON
	}
	return text
}

// objectChanges returns the changes of the object that is written.
func (d *draft) objectChanges(original runtime.Object) []verdict.Change {
	if original == nil {
		return nil
	}
	apiVersion, kind := d.req.objectType()
	o := verdict.Object{Kind: kind, Namespace: d.req.Namespace, Name: d.req.Name}
	if of, err := meta.Accessor(original); err == nil && of.GetName() != "" {
		o.Name = of.GetName()
	}
	changes := difference(original, d.req.Object)
	for i := range changes {
		changes[i].Of, changes[i].APIVersion, changes[i].Object = verdict.OfRequest, apiVersion, o
	}
	return changes
}

// objectType returns the version and kind of the object that is written.
func (req *Request) objectType() (apiVersion, kind string) {
	version := cmp.Or(req.Version, "v1")
	switch req.Resource + "/" + req.Subresource {
	case "serviceaccounts/token":
		return "authentication.k8s.io/v1", "TokenRequest"
	case "pods/eviction":
		return "policy/v1", "Eviction"
	}
	if req.Group != "" {
		version = req.Group + "/" + version
	}
	return version, kinds[req.Resource]
}

// kinds has the kind of each resource of the rules.
var kinds = map[string]string{
	"pods": "Pod", "nodes": "Node", "persistentvolumeclaims": "PersistentVolumeClaim", "serviceaccounts": "ServiceAccount",
	"podcertificaterequests": "PodCertificateRequest", "leases": "Lease", "csinodes": "CSINode", "resourceslices": "ResourceSlice",
	"certificatesigningrequests": "CertificateSigningRequest",
}
