package main

// Why targets are missed, and what figures mean. A reason is shown only where
// its target is missed.
const (
	whyAllowed = `Where no relation is asked about (own node, lease and CSINode, lists with a field
selector), both sides only compare a few strings, and little can be won. What needs the
graph, or the static rules, is well above the target; there the time is that of waiting
for memory: the slot, the vertex, its name, the set of its nodes.`

	whyRefused = `What is refused for its verb or its name alone costs either side little.`

	whyFanOut = `In-tree keeps an index of nodes for an object with 200 references and more, so it too answers
with a few look-ups. What remains is what both have to do: read the request, find the
rule, the object and the node.`

	whyPopulate = `In-tree's cost follows the number of new vertices, each of which it notes in a set of integers
that it searches from its beginning; that is three quarters of its time where every pod
has objects of its own. Where pods share objects there is one new vertex for each pod, and
in-tree is ten times faster than otherwise. Of ours, a third goes into reading the pod,
which is not in the caches either; the rest is a look-up for each reference, two
allocations, and the links.`

	whyHeap = `What is left is in use: for each object a name, a vertex of one cache line and a slot in the
table; for each reference a link at either end, so that a change costs the same whatever
the fan-out; for each object that several nodes reach, the set of these; for each node a
set with just itself, which the objects share that only it reaches.`

	whyGrowth = `The set of nodes of an object with many no longer fits the nearest caches.`

	whyConcurrent = `Lines of memory that the writer changes have to come from its core.`

	whyAnswers = `The time is that of writing the answer, which has every path to every node.`

	whyReview = `Decoding and encoding are the smaller part: a refusal says who refers to the object instead,
which has to be looked up and put in words, and makes the document longer.`

	floorMissed = `The floor writes an answer made beforehand; the server also decides, words the answer and
counts it, and its garbage collector has the whole cluster to look through.`

	apiServerMissed = `The load generator and TLS take their share of the two cores on either side, which the ratio of
throughputs includes and the processor time of the answering process does not.`

	sharedRemark = `Where 200 pods and more share a secret, a configmap, a claim or a service account, in-tree has an
index of its nodes and answers allowed requests without a search; these are faster here by
much less than all kinds together, in which its searches through volumes dominate.`

	unchangedRemark = `Updates that change nothing take ours longer: it reads all that a pod refers to and compares
it with what the graph has. In-tree compares the node, the UID and the claims' statuses
with those of the old pod, for which its informer keeps whole pods in memory. At 10,000
such updates a second the difference is about a hundredth of a core.`

	loadingRemark = `What limits reading manifests is decoding JSON, which takes half of the processor time, a third of
that for skipping what is not kept; a fifth goes into finding where objects end, by one
thread that reads ahead of the others, and a sixth into garbage collection. Putting the
objects into the graph takes a twentieth. Memory is what is kept, about doubled by the
garbage collector's pace.`

	reviewRemark = `What limits ` + "`review`" + ` is, for allowed documents, decoding and encoding themselves; for refused
ones, the words: finding who refers to the object instead and saying so.`

	pathsRemark = `What limits making the graph is what each node's credential may read, almost half of the time: a quarter
goes into listing the objects that each node is related to. A quarter goes into finding vertices by
name in one table, a sixth into reading the inventory in order and indexing it, and a twelfth into the
pods that may move. What limits a start is wording the steps to each holding that it reaches.`
)
