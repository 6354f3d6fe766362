// Package freshness keeps a kubelet from being refused because it learned of its pod
// before this process did.
//
// An API server announces a new pod to the kubelet and to this process at about the same
// time, on two watches. If the kubelet is faster, it asks for the pod's secrets before the
// graph relates them to its node. A refusal would then be based on an outdated state. So a
// request whose refusal could be caused by such a lag waits for a moment until the watch
// delivers the missing change, and is evaluated again. The answer is always the
// evaluator's own answer for the state at that time. Nothing is allowed that the state does
// not show.
//
// A wait has a time limit, and ends early with the request's context. There is no polling:
// the state reports which node a change concerns, and one goroutine probes the questions of
// that node again. Each different question is probed once, for any number of requests that
// ask it and of changes that arrived in the meantime. If too many requests of a node wait,
// for example because it asks for objects that it may not read, the oldest is answered and
// a new one takes its place. Service accounts on nodes, which NodeScopes hold to their node,
// cannot take all places: half of them are for the nodes.
//
// Until the state has been read, a refusal that a lag could explain is an error, not an
// answer.
package freshness
