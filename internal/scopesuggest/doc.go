// Package scopesuggest derives a NodeScope for a service account from what its roles grant and what
// it requested according to audit logs.
//
// Requests are grouped by verb and resource. Each group gets the tightest rule that fits all of its
// requests. The rules, from tight to loose:
//
//	namedAsNode  the object always had the name of the token's node
//	selectsNode  a field selector always required the name of the node
//	podsOnNode   the pod was always on the node, by the state or the log; in other groups, the object always had
//	             the namespace and the name of such a pod
//	asNode       the node itself would have been allowed all of them
//	anywhere     nothing of the above
//
// Without a log there is no such evidence. Then writes of well-known objects get the rule that they
// have by their meaning, and everything else that is granted is allowed anywhere.
package scopesuggest
