// Package freshness keeps a kubelet from being refused because it knows of its
// pod before this process does.
//
// An API server tells a kubelet and us of a new pod at about the same time, on
// two watches. When the kubelet is faster, it asks for the pod's secrets before
// the graph relates them to its node, and a refusal would be about a state that
// is already past. So a refusal that such a lag could explain is held back for a
// moment: the request waits until the watch brings what is missing, and is then
// decided anew. What a wait ends with is always the evaluator's own answer to
// the state at that time; nothing is allowed that the state does not show.
//
// A wait is bounded in time, and ends early with the request's context. Waiting
// costs no polling: the state says which node a change concerns, and one
// goroutine looks at the questions of that node again, each different question
// once, however many requests ask it and however many changes came meanwhile. A
// node that has too many requests waiting, as one that asks for what it may not
// have, gets its further answers at once.
//
// Until the state has been read, a refusal that lag could explain is no answer
// at all but an error.
package freshness
