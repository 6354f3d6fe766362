package review

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/noderestriction"
)

// hostileSize is a document size in bytes at which constant costs do not matter.
const hostileSize = 256 << 10

// repeated returns list entries of hostileSize bytes.
func repeated(entry string) string {
	return strings.Repeat(entry+",", hostileSize/(len(entry)+1)-1) + entry
}

// numbered is like repeated, with a number for "%d" in each entry.
func numbered(entry string) string {
	var b strings.Builder
	for i := 0; b.Len() < hostileSize; i++ {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, entry, i)
	}
	return b.String()
}

// hostileObjects are objects that take much more memory than their text if they are decoded
// completely.
func hostileObjects() map[string]string {
	million := strings.Repeat("9", hostileSize)
	spec := func(text string) string {
		return `{"kind":"KIND","apiVersion":"VERSION","metadata":{"name":"web"},"spec":{` + text + `}}`
	}
	metadata := func(text string) string { return `{"kind":"KIND","apiVersion":"VERSION","metadata":{` + text + `}}` }
	status := func(text string) string { return `{"kind":"KIND","apiVersion":"VERSION","status":{` + text + `}}` }
	return map[string]string{
		"empty containers":               spec(`"containers":[` + repeated(`{}`) + `]`),
		"containers":                     spec(`"containers":[` + repeated(`{"name":"","resources":{}}`) + `]`),
		"variables":                      spec(`"containers":[{"env":[` + repeated(`{"name":""}`) + `]}]`),
		"variables with references":      spec(`"containers":[{"env":[` + repeated(`{"valueFrom":{"secretKeyRef":{"name":"a"}}}`) + `]}]`),
		"requests":                       spec(`"containers":[{"resources":{"requests":{` + numbered(`"a/%d":1`) + `}}}]`),
		"empty volumes":                  spec(`"volumes":[` + repeated(`{}`) + `]`),
		"volumes":                        spec(`"volumes":[` + repeated(`{"name":"a","emptyDir":{}}`) + `]`),
		"projected sources":              spec(`"volumes":[{"projected":{"sources":[` + repeated(`{}`) + `]}}]`),
		"tolerations":                    spec(`"tolerations":[` + repeated(`{}`) + `]`),
		"taints":                         spec(`"taints":[` + repeated(`{}`) + `]`),
		"drivers":                        spec(`"drivers":[` + repeated(`{}`) + `]`),
		"access modes":                   spec(`"accessModes":[` + repeated(`""`) + `]`),
		"resources":                      spec(`"resources":{"requests":{` + numbered(`"%d":1`) + `}}`),
		"audiences":                      spec(`"audiences":[` + repeated(`""`) + `]`),
		"devices":                        spec(`"devices":[` + repeated(`{}`) + `]`),
		"a number":                       spec(`"priority":` + million),
		"a fraction":                     spec(`"priority":1.` + million),
		"a quantity":                     spec(`"resources":{"requests":{"a":` + million + `}}`),
		"a quantity of a container":      spec(`"containers":[{"resources":{"requests":{"a":"` + million + `"}}}]`),
		"managed fields":                 metadata(`"managedFields":[` + repeated(`{}`) + `]`),
		"owners":                         metadata(`"ownerReferences":[` + repeated(`{}`) + `]`),
		"finalizers":                     metadata(`"finalizers":[` + repeated(`""`) + `]`),
		"labels":                         metadata(`"labels":{` + numbered(`"%d":""`) + `}`),
		"annotations":                    metadata(`"annotations":{` + numbered(`"%d":""`) + `}`),
		"a long name":                    metadata(`"name":"` + strings.Repeat(`x`, hostileSize) + `"`),
		"claim statuses":                 status(`"resourceClaimStatuses":[` + repeated(`{}`) + `]`),
		"extended claims":                status(`"extendedResourceClaimStatus":{"requestMappings":[` + repeated(`{}`) + `]}`),
		"allocatable claims":             status(`"nodeAllocatableResourceClaimStatuses":[` + repeated(`{}`) + `]`),
		"mappings of allocatable claims": status(`"nodeAllocatableResourceClaimStatuses":[{"mapping":[` + repeated(`{}`) + `]}]`),
		"conditions":                     status(`"conditions":[` + repeated(`{}`) + `]`),
		"allocated resources":            status(`"allocatedResources":{` + numbered(`"%d":1`) + `}`),
		"images":                         status(`"images":[` + repeated(`{}`) + `]`),
		"nested lists": spec(
			`"other":[` + repeated(strings.Repeat("[", 250)+strings.Repeat("]", 250)) + `]`,
		),
	}
}

// maxMultiple is the maximum of allocated bytes per byte of a document. Less than half of
// them are in use at once: a growing list leaves shorter ones behind.
const maxMultiple = 45

// TestHostileObjectsTakeASmallMultiple counts allocated bytes, which do not depend on the
// speed of the machine.
func TestHostileObjectsTakeASmallMultiple(t *testing.T) {
	for name, text := range hostileObjects() {
		t.Run(name, func(t *testing.T) {
			for _, w := range restrictedWrites() {
				object := strings.NewReplacer("KIND", w.kind.Kind, "VERSION", w.kind.GroupVersion().String()).Replace(text)
				small := fmt.Sprintf(`{"kind":%q,"apiVersion":%q}`, w.kind.Kind, w.kind.GroupVersion())
				decode := func(document []byte) { _, _ = DecodeAdmission(document, readBoth) }
				allocates(t, w.resource+"/"+w.subresource, []byte(w.review(object, small)), decode)
				if w.operation == noderestriction.Update {
					allocates(t, w.resource+"/"+w.subresource+" (old)", []byte(w.review(small, object)), decode)
				}
				if w.resource == "pods" && w.subresource == "" {
					allocates(t, "tolerations", []byte(w.review(object, small)), func(document []byte) {
						if read, err := DecodeTolerations(document); err == nil {
							read.Patch()
						}
					})
				}
			}
		})
	}
}

func TestHostileReviewsTakeASmallMultiple(t *testing.T) {
	access := `{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1","spec":{"user":"a",` +
		`"resourceAttributes":{"verb":"get"%s}%s}}`
	selector := `,"fieldSelector":{"requirements":[` + repeated(`{}`) + `]}`
	for name, document := range map[string]string{
		"groups":        fmt.Sprintf(access, "", `,"groups":[`+repeated(`""`)+`]`),
		"extra":         fmt.Sprintf(access, "", `,"extra":{`+numbered(`"%d":[]`)+`}`),
		"requirements":  fmt.Sprintf(access, selector, ""),
		"labels":        fmt.Sprintf(access, `,"labelSelector":{"requirements":[`+repeated(`{"key":"a","operator":"Exists"}`)+`]}`, ""),
		"bad labels":    fmt.Sprintf(access, `,"labelSelector":{"requirements":[`+repeated(`{"key":"","operator":"x"}`)+`]}`, ""),
		"raw fields":    fmt.Sprintf(access, `,"fieldSelector":{"rawSelector":"`+repeated(`a=b`)+`"}`, ""),
		"raw labels":    fmt.Sprintf(access, `,"labelSelector":{"rawSelector":"`+repeated(`a`)+`"}`, ""),
		"unknown field": fmt.Sprintf(access, `,"x":[`+repeated(`{}`)+`]`, ""),
		"unknown names": fmt.Sprintf(access, `,"x":{`+numbered(`"%d":0`)+`}`, ""),
		"a number":      fmt.Sprintf(access, `,"x":`+strings.Repeat("1", hostileSize), ""),
	} {
		t.Run(name, func(t *testing.T) {
			allocates(t, "access", []byte(document), func(document []byte) {
				_, _ = DecodeAccessReview(document)
			})
		})
	}
	token := `{"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1","spec":{"token":"a","audiences":[` + repeated(`""`) + `]}}`
	allocates(t, "token", []byte(token), func(document []byte) {
		if _, err := DecodeTokenReview(document); err != nil {
			t.Error(err)
		}
	})
}

func allocates(t *testing.T, what string, document []byte, decode func([]byte)) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	decode(document)
	runtime.ReadMemStats(&after)
	multiple := float64(after.TotalAlloc-before.TotalAlloc) / float64(len(document))
	t.Logf("%s: %.1f times", what, multiple)
	if multiple > maxMultiple {
		t.Errorf("%s: %.1f times the size of the document, want at most %d", what, multiple, maxMultiple)
	}
}
