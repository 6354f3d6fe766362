// Package learn reads from audit logs what service accounts requested, and from which node. It derives a NodeScope for
// an account from these requests and what its roles grant, and says what NodeScopes would have refused.
//
// Requests are grouped by verb and resource. Those that one of these rules fits are about the own node, and
// the group gets the rule that fits most of them, the tightest of several, and more if that leaves some out:
//
//	namedAsNode  the object has the name of the token's node
//	selectsNode  a field selector requires the name of the node
//	podsOnNode   the pod is on the node, by the state or the log; in other groups, the object has the
//	             namespace and the name of such a pod
//	asNode       the node itself would be allowed the request
//
// The log may have an attack. So if something in a group is about a node, the own or another, what is not about
// the own node is an outlier; of verbs that do the same, such as list and watch, one is enough. So is a request for which
// a right leads away from the node in any case, as attack paths know. The scope refuses outliers unless a person
// accepts them. Then they get a rule in anywhere, and so does any other group in which nothing shows a node.
//
// Without a log there is no such evidence. Then writes of well-known objects get the rule that they
// have by their meaning, and everything else that is granted is allowed anywhere.
package learn
