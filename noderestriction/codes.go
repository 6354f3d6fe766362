package noderestriction

import "github.com/node-authorizer/node-authorizer/verdict"

// The codes of the answers. Codes with the same meaning as one of the Node authorizer
// have the same name. See docs/reference/reasons.
const (
	// Allowed.
	NotANode        verdict.Code = "NotANode"
	NotRestricted   verdict.Code = "NotRestricted"
	RestrictionsMet verdict.Code = "RestrictionsMet"

	// Refused for any object.
	UnnamedNode           verdict.Code = "UnnamedNode"
	OperationNotAllowed   verdict.Code = "OperationNotAllowed"
	SubresourceNotAllowed verdict.Code = "SubresourceNotAllowed"
	FeatureDisabled       verdict.Code = "FeatureDisabled"
	UnexpectedObject      verdict.Code = "UnexpectedObject"

	// Pods.
	NotAMirrorPod              verdict.Code = "NotAMirrorPod"
	OwnerNotThisNode           verdict.Code = "OwnerNotThisNode"
	OwnerNotController         verdict.Code = "OwnerNotController"
	OwnerBlocksDeletion        verdict.Code = "OwnerBlocksDeletion"
	NodeNotFound               verdict.Code = "NodeNotFound"
	NodeUIDMismatch            verdict.Code = "NodeUIDMismatch"
	MirrorPodRefersToObject    verdict.Code = "MirrorPodRefersToObject"
	PodNameRequired            verdict.Code = "PodNameRequired"
	PodNotFound                verdict.Code = "PodNotFound"
	PodUIDMismatch             verdict.Code = "PodUIDMismatch"
	PodNotOnNode               verdict.Code = "PodNotOnNode"
	PodLabelsChanged           verdict.Code = "PodLabelsChanged"
	ResourceClaimStatusChanged verdict.Code = "ResourceClaimStatusChanged"

	// Nodes.
	WritesOtherNode        verdict.Code = "WritesOtherNode"
	ConfigSourceSet        verdict.Code = "ConfigSourceSet"
	TaintsChanged          verdict.Code = "TaintsChanged"
	OwnerReferencesChanged verdict.Code = "OwnerReferencesChanged"
	LabelNotAllowed        verdict.Code = "LabelNotAllowed"

	// Claims.
	ClaimChanged verdict.Code = "ClaimChanged"

	// Tokens and pod certificates.
	TokenNotBoundToPod         verdict.Code = "TokenNotBoundToPod"
	OneAudienceOnly            verdict.Code = "OneAudienceOnly"
	AudienceNotAllowed         verdict.Code = "AudienceNotAllowed"
	AudienceLookupFailed       verdict.Code = "AudienceLookupFailed"
	AuthorizationFailed        verdict.Code = "AuthorizationFailed"
	CertificateForOtherNode    verdict.Code = "CertificateForOtherNode"
	CertificateForMirrorPod    verdict.Code = "CertificateForMirrorPod"
	PodUsesOtherServiceAccount verdict.Code = "PodUsesOtherServiceAccount"
	ServiceAccountNotFound     verdict.Code = "ServiceAccountNotFound"
	ServiceAccountUIDMismatch  verdict.Code = "ServiceAccountUIDMismatch"
	SignerNotAllowed           verdict.Code = "SignerNotAllowed"
	SigningRequestNotReadable  verdict.Code = "SigningRequestNotReadable"
	SigningRequestForOtherName verdict.Code = "SigningRequestForOtherName"

	// Other objects with the node's name.
	NotLeaseNamespace   verdict.Code = "NotLeaseNamespace"
	NotOwnLease         verdict.Code = "NotOwnLease"
	NotOwnCSINode       verdict.Code = "NotOwnCSINode"
	CSINodeSpecChanged  verdict.Code = "CSINodeSpecChanged"
	NotOwnResourceSlice verdict.Code = "NotOwnResourceSlice"
)
