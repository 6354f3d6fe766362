package attackpaths

import (
	"slices"
	"strings"

	"github.com/node-authorizer/node-authorizer/kubeversion"
)

// The table of all rights says for each request that an API server can be asked what the right to
// make it gives. It covers each resource and subresource that API servers of the supported minors
// serve, and the rights that they ask about besides: testdata/discovery.txt and
// testdata/unlisted.txt, with which a test compares it. docs/rights.md is made from it. The rights that techniques use
// come from the tables of rights and techniques, and the others from rightsRows.

// rightsRow says about some verbs on some resources of a group what the rights to them give besides techniques.
type rightsRow struct {
	group string
	// resources are separated by spaces, as in "pods pods/exec". As a resource or as a subresource, *
	// stands for any name; a path, as in /logs/*, is a URL without a resource.
	resources string
	// verbs are separated by spaces. One that ends in * stands for all that begin so.
	verbs string
	// open says what the right may give that is not followed, and who decides. clusterScoped is set if the
	// resources of such a row have no namespace.
	open          string
	clusterScoped bool
	// nothing says why the right gives nothing beyond itself. A row has either this or open.
	nothing string
}

// Verbs that rows have in common.
const (
	reads   = "get list watch"
	edits   = "update patch"
	removes = "delete deletecollection"
	every   = reads + " " + writes
	writes  = "create " + edits + " " + removes
)

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

	clusterScoped bool
}

// String names the right as people write it: "create pods/exec".
func (r TableRight) String() string {
	return r.Verb + " " + objectText(r.Group, r.Resource, r.Subresource)
}

// objectText names what a right is about: "applications.argoproj.io/status".
func objectText(group, resource, subresource string) string {
	if group != "" {
		resource += "." + group
	}
	if subresource != "" {
		resource += "/" + subresource
	}
	return resource
}

// TableOfRights returns the table of all rights.
func TableOfRights() []TableRight {
	all := make([]TableRight, len(allRights))
	for i, r := range allRights {
		all[i] = *r
		all[i].Gives = slices.Clone(r.Gives)
	}
	return all
}

// allRights is the table, and openTable are its rights that are not followed by group: it has each group. They never change.
var (
	allRights = listAllRights()
	openTable = openByGroup()
)

func openByGroup() map[string][]*TableRight {
	all := map[string][]*TableRight{}
	for _, r := range allRights {
		open := all[r.Group]
		if r.NotFollowed != "" {
			open = append(open, r)
		}
		all[r.Group] = open
	}
	return all
}

// rightsList is the table while it is made.
type rightsList struct {
	all   []*TableRight
	known map[string]*TableRight
}

// at finds verbs on resources of a group, and adds those that are new.
func (l *rightsList) at(group, resources, verbs string) []*TableRight {
	var found []*TableRight
	for _, name := range strings.Fields(resources) {
		resource, subresource, _ := strings.Cut(name, "/")
		if resource == "" {
			resource, subresource = name, "" // a path
		}
		for _, verb := range strings.Fields(verbs) {
			r := &TableRight{Group: group, Resource: resource, Subresource: subresource, Verb: verb}
			if known := l.known[r.String()]; known != nil {
				r = known
			} else {
				l.all, l.known[r.String()] = append(l.all, r), r
			}
			found = append(found, r)
		}
	}
	return found
}

// uses notes that a technique uses a kind of request.
func (l *rightsList) uses(k *requestKind, code Code) {
	object := objectText("", k.resource, k.subresource)
	if k.subresource == nodeNameKey {
		object = k.resource + "/*"
	}
	for _, r := range l.at(k.group, object, strings.Join(k.verbs, " ")) {
		if !slices.Contains(r.Gives, code) {
			r.Gives = append(r.Gives, code)
		}
	}
}

// say notes what a row says. That a right gives nothing counts where it is not known to give something.
func (l *rightsList) say(row rightsRow) {
	for _, r := range l.at(row.group, row.resources, row.verbs) {
		switch {
		case row.open != "":
			r.NotFollowed, r.clusterScoped = row.open, row.clusterScoped
		case len(r.Gives) == 0 && r.NotFollowed == "" && r.Nothing == "":
			r.Nothing = row.nothing
		}
	}
}

// listAllRights takes the rights that techniques use, and adds what the rows say; and that objects which can be deleted or changed
// can be read, and that controllers write the status of some again.
func listAllRights() []*TableRight {
	l, parts := rightsList{known: map[string]*TableRight{}}, rightsList{known: map[string]*TableRight{}}
	kinds := kindsFor(&Cluster{Features: kubeversion.For(kubeversion.Oldest)})
	for i := range techniques {
		t := &techniques[i]
		for _, r := range slices.Concat(t.needs, t.helps) {
			l.uses(&kinds[r], t.Code)
			if place := slices.Index(madeByName[:], r); place >= 0 {
				parts.uses(&kinds[partOf(place)+1], t.Code)
			}
		}
	}
	for _, part := range parts.all { // who may patch an object creates one, if nothing else comes from that
		if r := l.at(part.Group, part.Resource, part.Verb)[0]; len(r.Gives) == 0 {
			r.Gives = part.Gives
		}
	}
	l.at("*", "*", "impersonate-on:*")[0].Gives = []Code{Impersonate}
	for _, row := range rightsRows {
		l.say(row)
	}
	for i := 0; i < len(l.all); i++ { // which grows
		r := l.all[i]
		object := objectText("", r.Resource, r.Subresource)
		switch {
		case r.Verb == "delete" && r.Subresource == "":
			l.say(rightsRow{group: r.Group, resources: object, verbs: reads, nothing: nothingRead})
			if slices.Contains(strings.Fields(reported), r.Resource) {
				l.say(rightsRow{group: r.Group, resources: object + "/status", verbs: edits, nothing: nothingStatus})
			}
		case r.Verb == "update":
			l.say(rightsRow{group: r.Group, resources: object, verbs: "get", nothing: nothingRead})
		}
	}
	return l.all
}
