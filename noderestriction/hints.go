package noderestriction

import "github.com/node-authorizer/node-authorizer/verdict"

// hint returns one line for each code that says what would have to change. It is
// empty if the message is sufficient.
func hint(code verdict.Code) string {
	switch code {
	case UnnamedNode:
		return "the user name must be system:node: followed by the node's name"
	case UnexpectedObject:
		return "send the object in a version that the API server serves"
	case NotAMirrorPod:
		return "nodes create mirror pods of their static pods; create other pods with another credential"
	case PodNotOnNode, PodNotFound, PodUIDMismatch:
		return "a pod that was bound a moment ago passes when it is tried again"
	case OwnerNotThisNode, OwnerNotController, OwnerBlocksDeletion:
		return "a mirror pod has one owner reference: its Node, controller: true, without blockOwnerDeletion"
	case NodeNotFound, NodeUIDMismatch:
		return "a node that registered a moment ago passes when it is tried again"
	case MirrorPodRefersToObject:
		return "remove the reference from the static pod's manifest, or run it as an ordinary pod"
	case LabelNotAllowed:
		return "set these labels with an administrator's credential, or use a prefix outside kubernetes.io and k8s.io"
	case TaintsChanged:
		return "a node sets taints when it registers; change them with an administrator's credential"
	case TokenNotBoundToPod:
		return "a node requests tokens that are bound to a pod on it, by name and uid"
	case OneAudienceOnly:
		return "request one token for each audience"
	case AudienceNotAllowed:
		return "project a token with this audience into the pod, add it to the CSI driver's tokenRequests, or grant the verb " +
			"request-serviceaccounts-token-audience"
	case AudienceLookupFailed:
		return "repair what the message names: until then no audience that the pod's other volumes lack is given"
	case SignerNotAllowed:
		return "project a certificate of this signer into the pod, or grant the verb request-serviceaccounts-podcertificate-signer"
	case SigningRequestForOtherName:
		return "a node requests kubelet certificates for its own name"
	}
	return ""
}
