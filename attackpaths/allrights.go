package attackpaths

import (
	"slices"
	"strings"
)

// The table of all rights says for each request that an API server can be asked what the right to
// make it gives. It covers each resource and subresource that API servers of the supported minors
// serve, and the rights that they ask about besides: testdata/discovery.txt and
// testdata/unlisted.txt, with which a test compares it. docs/rights.md is made from it.

// rightsRow is a row of the table: what some verbs on some resources of a group give.
type rightsRow struct {
	// resources are separated by spaces, as in "pods pods/exec". As a resource or as a subresource, *
	// stands for any name; a path, as in /logs/*, is a URL without a resource.
	resources string
	// verbs are separated by spaces. One that ends in * stands for all that begin so.
	verbs string
	// gives are the techniques that use the right, alone or together with others.
	gives []Code
	// open says what the right may give that is not followed, and who decides. clusterScoped is set if the
	// resources of such a row have no namespace.
	open          string
	clusterScoped bool
	// nothing says why the right gives nothing beyond itself. A row has either this or one of the others.
	nothing string
}

// rightsGroup are the rows of an API group.
type rightsGroup struct {
	group string
	rows  []rightsRow
}

// allRights is a table and never changes.
var allRights = []rightsGroup{
	{"", coreRights},
	{"", nodeRights},
	{"admissionregistration.k8s.io", admissionRights},
	{"apiextensions.k8s.io", []rightsRow{
		{resources: "customresourcedefinitions", verbs: reads, nothing: nothingRead},
		{resources: "customresourcedefinitions", verbs: "create " + edits, open: openConversion, clusterScoped: true},
		{resources: "customresourcedefinitions", verbs: removes, open: openControllers, clusterScoped: true},
		{resources: "customresourcedefinitions/status", verbs: ofStatus, nothing: nothingStatus},
	}},
	{"apiregistration.k8s.io", []rightsRow{
		{resources: "apiservices", verbs: reads, nothing: nothingRead},
		{resources: "apiservices", verbs: "create " + edits, gives: []Code{APIService}},
		{resources: "apiservices", verbs: removes, nothing: "it ends an API, and no right comes from that"},
		{resources: "apiservices/status", verbs: ofStatus, nothing: nothingStatus},
	}},
	{apps, appsRights},
	{authn, authenticationRights},
	{"authorization.k8s.io", []rightsRow{{
		resources: "localsubjectaccessreviews selfsubjectaccessreviews selfsubjectrulesreviews subjectaccessreviews",
		verbs:     "create", nothing: "it answers what somebody may do",
	}}},
	{"autoscaling", []rightsRow{
		{resources: "horizontalpodautoscalers", verbs: reads, nothing: nothingRead},
		{resources: "horizontalpodautoscalers", verbs: writes, open: openScale},
		{resources: "horizontalpodautoscalers/status", verbs: ofStatus, nothing: nothingStatus},
	}},
	{batch, batchRights},
	{certG, certificatesRights},
	{"coordination.k8s.io", []rightsRow{
		{resources: "leases leasecandidates", verbs: reads, nothing: nothingRead},
		{resources: "leases leasecandidates", verbs: writes, open: openLeases},
	}},
	{"discovery.k8s.io", []rightsRow{
		{resources: "endpointslices", verbs: reads, nothing: nothingRead},
		{resources: "endpointslices", verbs: writes, open: openTraffic},
	}},
	{"events.k8s.io", []rightsRow{{resources: "events", verbs: every, nothing: nothingEvents}}},
	{"flowcontrol.apiserver.k8s.io", []rightsRow{
		{
			resources: "flowschemas prioritylevelconfigurations", verbs: every,
			nothing: "it changes whose requests wait, and never whose are allowed",
		},
		{resources: "flowschemas/status prioritylevelconfigurations/status", verbs: ofStatus, nothing: nothingStatus},
	}},
	{"internal.apiserver.k8s.io", []rightsRow{
		{resources: "storageversions", verbs: every, nothing: "API servers note there in which version they store objects"},
		{resources: "storageversions/status", verbs: ofStatus, nothing: nothingStatus},
	}},
	{"lifecycle.k8s.io", []rightsRow{
		{resources: "evictionrequests evictions", verbs: reads, nothing: nothingRead},
		{resources: "evictionrequests evictions", verbs: writes, open: openEvictions},
		{resources: "evictionrequests/status evictions/status", verbs: "get", nothing: nothingRead},
		{resources: "evictionrequests/status evictions/status", verbs: edits, open: openEvictions},
	}},
	{"networking.k8s.io", networkRights},
	{"node.k8s.io", []rightsRow{
		{resources: "runtimeclasses", verbs: reads, nothing: nothingRead},
		{resources: "runtimeclasses", verbs: writes, open: openSandbox, clusterScoped: true},
	}},
	{"policy", []rightsRow{
		{
			resources: "poddisruptionbudgets", verbs: every,
			nothing: "it delays evictions; pods that may be evicted count as evicted at some time",
		},
		{resources: "poddisruptionbudgets/status", verbs: ofStatus, nothing: nothingStatus},
	}},
	{rbacG, rbacRights},
	{"resource.k8s.io", deviceRights},
	{"scheduling.k8s.io", schedulingRights},
	{"storage.k8s.io", storageRights},
	{"storagemigration.k8s.io", []rightsRow{
		{resources: "storageversionmigrations", verbs: every, nothing: "objects are written again as they are"},
		{resources: "storageversionmigrations/status", verbs: ofStatus, nothing: nothingStatus},
	}},
	{"metrics.k8s.io", []rightsRow{{resources: "nodes pods", verbs: "get list", nothing: nothingMetrics}}},
	{"custom.metrics.k8s.io", []rightsRow{{resources: "*", verbs: "get list", nothing: nothingMetrics}}},
	{"external.metrics.k8s.io", []rightsRow{{resources: "*", verbs: "get list", nothing: nothingMetrics}}},
	{"iamauthenticator.k8s.aws", []rightsRow{
		{resources: "iamidentitymappings", verbs: "create " + edits, gives: []Code{NodeIdentityConfig}},
		{resources: "iamidentitymappings", verbs: reads + " " + removes, nothing: "it names identities, or takes them away"},
	}},
	{"policy.node-authorizer.io", []rightsRow{
		{resources: "nodescopes quarantines", verbs: reads, nothing: nothingRead},
		{resources: "nodescopes quarantines", verbs: writes, open: openScopes, clusterScoped: true},
		{resources: "nodescopes/status quarantines/status", verbs: ofStatus, nothing: nothingStatus},
	}},
	{"node-authorizer.io", []rightsRow{
		{resources: "nodeattestations", verbs: reads, nothing: nothingRead},
		{resources: "nodeattestations", verbs: writes, open: openLedger, clusterScoped: true},
		{resources: "nodeattestations/status", verbs: "get", nothing: nothingRead},
		{resources: "nodeattestations/status", verbs: edits, open: openLedger, clusterScoped: true},
	}},
	{"*", []rightsRow{
		{resources: "*", verbs: "impersonate-on:*", gives: []Code{Impersonate}},
		{resources: "*", verbs: "unsafe-delete-ignore-read-errors", nothing: "an object that cannot be read is deleted"},
	}},
}

// Verbs that rows have in common.
const (
	reads    = "get list watch"
	edits    = "update patch"
	removes  = "delete deletecollection"
	every    = reads + " " + writes
	writes   = "create " + edits + " " + removes
	ofStatus = "get " + edits
)

// rightCell is one verb on one resource of a group.
type rightCell struct{ group, resource, subresource, verb string }

func (c rightCell) String() string {
	text := c.resource
	if c.group != "" {
		text += "." + c.group
	}
	if c.subresource != "" {
		text += "/" + c.subresource
	}
	return c.verb + " " + text
}

// cells are the verbs on the resources of a row.
func (r *rightsRow) cells(group string) []rightCell {
	var all []rightCell
	for _, name := range strings.Fields(r.resources) {
		resource, subresource, _ := strings.Cut(name, "/")
		if resource == "" {
			resource, subresource = name, "" // a path
		}
		for _, verb := range strings.Fields(r.verbs) {
			all = append(all, rightCell{group, resource, subresource, verb})
		}
	}
	return all
}

// TableRight is a verb on a resource, and what the right to it gives, as in docs/rights.md.
type TableRight struct {
	// Group, Resource and Subresource say what the right is about. As a resource or a subresource, * stands for any
	// name; a path, as in /logs/*, is a URL without a resource.
	Group, Resource, Subresource string
	// Verb ends in * if it stands for all that begin so.
	Verb string
	// Gives are the techniques that use the right, alone or together with others.
	Gives []Code
	// NotFollowed says what the right may give that paths do not follow, and who decides; empty for other rights.
	NotFollowed string
	// Nothing says why the right gives nothing beyond itself. A right has either this or one of the others.
	Nothing string
}

// String names the right as people write it: "create pods/exec".
func (r TableRight) String() string {
	return rightCell{r.Group, r.Resource, r.Subresource, r.Verb}.String()
}

// TableOfRights returns the table of all rights.
func TableOfRights() []TableRight {
	var all []TableRight
	for _, g := range allRights {
		for i := range g.rows {
			r := &g.rows[i]
			for _, c := range r.cells(g.group) {
				all = append(all, TableRight{c.group, c.resource, c.subresource, c.verb, slices.Clone(r.gives), r.open, r.nothing})
			}
		}
	}
	return all
}

// openRow is a row that is not followed, with its cells.
type openRow struct {
	*rightsRow
	cells []rightCell
}

// openRows are the rows that are not followed by group. They have each group of the table, and never change.
var openRows = findOpenRows()

func findOpenRows() map[string][]openRow {
	all := map[string][]openRow{}
	for _, g := range allRights {
		all[g.group] = append(all[g.group], nil...)
		for i := range g.rows {
			if r := &g.rows[i]; r.open != "" {
				all[g.group] = append(all[g.group], openRow{r, r.cells(g.group)})
			}
		}
	}
	return all
}
