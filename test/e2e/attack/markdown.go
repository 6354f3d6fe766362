package attack

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
)

// Row has the answers of two clusters to a request.
type Row struct {
	Request
	// ID is the id of the requests in the audit logs.
	ID           string
	InTree, Ours Answer
	Reasons      Reasons
}

// Agrees reports whether the answers are equal.
func (r Row) Agrees() bool { return r.InTree.Status == r.Ours.Status }

// Report is a section with its answers.
type Report struct {
	Section
	Rows []Row
}

const introduction = `# The attack matrix

<!-- Written by "make attack-matrix"; do not edit. -->

Somebody has broken into the node %[1]sweb-1%[1]s and holds its kubelet's client certificate.
This page and [every verb](every-verb.md) list their requests, and the answers of two control planes of Kubernetes 1.37: one
as clusters run it, with the Node authorizer and the NodeRestriction plugin inside
kube-apiserver, and one without either, whose kube-apiserver asks
%[1]snode-authorizer server%[1]s instead. Both hold the same objects. An *own* object belongs to
web-1 or to a pod on it, a *foreign* object to the node pay-1.

A number is the HTTP status of the answer: 200 and 201 are allowed, 403 is refused. Other
numbers mean that the request was authorized and then failed: 404 the object does not exist, 409 it exists
already, 400 and 422 the request is not valid, and 500 tells a kubelet to try again, which
NodeRestriction does where a cache may lag. The reasons are the [codes](../../reference/reasons/README.md) with which
node-authorizer decided, first as authorizer, then as admission webhook. Where it let a request
pass that was still refused, another part of kube-apiserver refused it, as in every cluster.
RBAC means that the authorizer after ours allowed it, as it does for every authenticated user.

Paths begin with the resource, and are in the namespace %[1]sstock%[1]s if they name none.
Every write is first sent as a dry run, which leaves out nothing but the effect. A write that was
not allowed is then sent without a dry run, and must get the same answer.

`

const everyVerbIntroduction = `# The attack matrix: every verb

<!-- Written by "make attack-matrix"; do not edit. -->

[The attack matrix](README.md) says what the columns mean.
`

// The pages of the matrix. The second has the sections about every verb on one resource.
const (
	mainPage      = "README.md"
	everyVerbPage = "every-verb.md"
)

// pageOf returns the page of a section.
func pageOf(title string) string {
	if strings.HasPrefix(title, "Every verb: ") {
		return everyVerbPage
	}
	return mainPage
}

// Markdown renders the reports, as pages by their names. The output is deterministic.
func Markdown(reports []Report) map[string]string {
	pages := map[string]*strings.Builder{mainPage: {}, everyVerbPage: {}}
	fmt.Fprintf(pages[mainPage], introduction, "`")
	summarize(pages[mainPage], reports)
	pages[everyVerbPage].WriteString(everyVerbIntroduction)
	for _, report := range reports {
		out := pages[pageOf(report.Title)]
		fmt.Fprintf(out, "\n## %s\n\n%s\n\n", report.Title, report.About)
		out.WriteString("| what | request | in-tree | ours | our reason |\n|---|---|--:|--:|---|\n")
		for _, row := range report.Rows {
			fmt.Fprintf(out, "| %s | %s | %d | %s | %s |\n", row.Attack, shown(row.Request), row.InTree.Status, ours(row), row.Reasons)
		}
	}
	texts := map[string]string{}
	for name, out := range pages {
		texts[name] = out.String()
	}
	return texts
}

func summarize(out *strings.Builder, reports []Report) {
	out.WriteString("| | requests | allowed | refused | otherwise | answered differently |\n|---|--:|--:|--:|--:|--:|\n")
	var total [5]int
	for _, report := range reports {
		var counts [5]int
		for _, row := range report.Rows {
			counts[0]++
			switch {
			case row.Ours.Allowed():
				counts[1]++
			case row.Ours.Refused():
				counts[2]++
			default:
				counts[3]++
			}
			if !row.Agrees() {
				counts[4]++
			}
		}
		for i, n := range counts {
			total[i] += n
		}
		link := strings.TrimPrefix(pageOf(report.Title), mainPage) + "#" + anchor(report.Title)
		fmt.Fprintf(out, "| [%s](%s) | %d | %d | %d | %d | %d |\n", report.Title, link,
			counts[0], counts[1], counts[2], counts[3], counts[4])
	}
	fmt.Fprintf(out, "| **all** | **%d** | **%d** | **%d** | **%d** | **%d** |\n", total[0], total[1], total[2], total[3], total[4])
}

// anchor returns the anchor of a heading.
func anchor(title string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == ':' || r == '\'' || r == ',':
			return -1
		default:
			return r
		}
	}, strings.ToLower(title))
}

// shown returns method and path, without common prefixes.
func shown(r Request) string {
	path, err := url.QueryUnescape(r.Path)
	if err != nil {
		path = r.Path
	}
	path = strings.Replace(groupVersion.ReplaceAllString(path, ""), "namespaces/stock/", "", 1)
	return fmt.Sprintf("`%s %s`", r.Method, path)
}

var groupVersion = regexp.MustCompile(`^/(api|apis/[a-z0-9.]+)/v1/`)

func ours(row Row) string {
	if row.Agrees() {
		return fmt.Sprint(row.Ours.Status)
	}
	return fmt.Sprintf("**%d**", row.Ours.Status)
}
