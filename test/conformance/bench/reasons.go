package main

// Why targets are missed, and how to read figures. A reason is shown only where
// its target is missed.
const (
	whyAllowed = `Where no relation is asked about (own node, lease and CSINode, lists with a field
selector), both sides only compare a few strings, and little can be won. Requests that need the
graph, or the static rules, are well above the target; they spend their time waiting
for memory: the slot, the vertex, its name, the set of its nodes.`

	whyRefused = `Requests that are refused for their verb or name alone cost either side little.`

	whyFanOut = `In-tree keeps an index of nodes for an object with 200 references and more, so it too answers
with a few look-ups. The rest is work that both have to do: read the request, find the
rule, the object and the node.`

	whyPopulate = `In-tree's cost follows the number of new vertices, each of which it notes in a set of integers
that it searches from its beginning; that is three quarters of its time where every pod
has objects of its own. Where pods share objects there is one new vertex for each pod, and
in-tree is ten times faster than otherwise. Of ours, a fifth goes into reading the pod,
which is not in the caches either, and more than a quarter into looking up the pod and the five
objects that it names: both alone take nine tenths of the time that the target allows. The rest
is for the sets of nodes (a seventh), the growing table (a ninth), the links (a tenth) and two
allocations.`

	whyHeap = `All of this memory is in use. A pod with objects of its own takes five vertices of one cache line
(320 B), their names (130 B, which in-tree keeps too), a link at either end of each reference, so
that a change costs the same for any fan-out (160 B), and slots of the table, which is
between two and four fifths full (85 B). With the first link within the vertex instead of in an
allocation of its own, that would by calculation be 8 % less, but 2 % more where pods share objects. A node
takes a vertex, a name and a set with just itself (64 B), which the objects share that only
it reaches; these count where each pod has a node of its own.`

	whyGrowth = `The set of nodes of an object with many no longer fits the nearest caches.`

	whyConcurrent = `Lines of memory that the writer changes have to come from its core.`

	whyAnswers = `The question is put about every node. Of each that may not, the claims of its pods are looked
through for volumes that files lack, which takes more than half of the time where few nodes may.
With every path to every node as JSON, more than half of the time is for encoding and writing.`

	whyReview = `Of the time of a refused document, less than half goes into decoding and encoding. More than a
quarter goes into the references to the object, each of which is read to find the first, a seventh
into the decision, and a twentieth into the words. The decision and the references wait for
memory: the object, its links, and for each link the pod and its name. Even without references
and words a refusal would cost what an allowed document costs, which is all that the target
allows.`

	floorMissed = `The floor writes an answer made beforehand; the server also decides, words the answer and counts
it. In one process, with few objects in memory, that takes 4 µs of 28 µs, of which the floor,
TLS and the load generator are 24 µs. The rest comes with the cluster: its garbage collector has
all of it to look through, which the floor's has not, and decisions wait for memory.`

	apiServerMissed = `The load generator and TLS take their share of the two cores on either side, which the ratio of
throughputs includes and the processor time of the answering process does not.`

	sharedRemark = `Where 200 pods and more share a secret, a configmap, a claim or a service account, in-tree has an
index of its nodes and answers allowed requests without a search; these are faster here by
much less than all kinds together, in which its searches through volumes dominate.`

	unchangedRemark = `Updates that change nothing take ours longer: it reads all references of a pod and compares
them with the graph. In-tree compares the node, the UID and the claims' statuses
with the old pod, for which its informer keeps whole pods in memory. At 10,000
such updates a second the difference is about a hundredth of a core.`

	loadingRemark = `Decoding JSON limits the reading of manifests. One thread finds where objects end, and reads ahead of the
others. The memory is the kept state, about doubled by the garbage collector's pace.`

	reviewRemark = `The limits of ` + "`review`" + ` are decoding and encoding for allowed documents, and for refused
ones the references to the object, which are read to say who refers to it instead.`

	pathsRemark = `Making the graph takes almost half of its time for the objects that each node's credential may read: a quarter
goes into listing the objects that each node is related to. A quarter goes into finding vertices by
name in one table, a sixth into reading the inventory in order and indexing it, and a twelfth into the
pods that may move. Most of the time of a start goes into wording the steps to each holding that it reaches.`
)
