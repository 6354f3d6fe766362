package main

import (
	"bytes"
	"context"
	stdjson "encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/internal/review"
	"github.com/node-authorizer/node-authorizer/internal/state/source"
	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/nodeauthz"
	"github.com/node-authorizer/node-authorizer/verdict"
)

const reviewsMethod = `SubjectAccessReviews, one JSON document a line, go through the function behind
` + "`node-authorizer review`" + `, over the large cluster of the section above, and as often
through a loop that only decodes and encodes them: with the package that ` + "`review`" + ` uses,
and with ` + "`encoding/json`" + `. On one core, processor time counts; garbage collection is part of it.`

// reviews measures the throughput of review.
func (b *bench) reviews() (section, error) {
	s := section{title: "Throughput of `review`", method: reviewsMethod}
	l := fileCluster{nodes: b.sizes.fileNodes, podsPerNode: b.sizes.podsPerNode}
	b.log("reviews: loading")
	state, err := b.load(l)
	if err != nil {
		return s, err
	}
	evaluate := alone(nodeauthz.New(state.Graph, kubeversion.For(kubeversion.Latest)))
	t := table{
		caption: "**Documents a second**, and the share of the throughput of a loop that only decodes and encodes.",
		header:  []string{"documents", "share", "`review`", "decode and encode", "with `encoding/json`"},
	}
	for _, d := range []struct {
		what  string
		share int // of ten that are allowed
	}{{"allowed", 10}, {"refused", 0}, {"half of them allowed", 5}} {
		documents, err := l.documents(b.sizes.documents, d.share)
		if err != nil {
			return s, err
		}
		one, err := b.oneCore(evaluate, documents)
		if err != nil {
			return s, err
		}
		t.addReview(d.what+", one core", one)
		if d.share == 5 {
			all, err := b.allCores(evaluate, documents)
			if err != nil {
				return s, err
			}
			t.addReview(fmt.Sprintf("%s, %d cores", d.what, runtime.GOMAXPROCS(0)), all)
		}
		got := one.share()
		s.targets = append(s.targets, target{
			what: "`review`, " + d.what, want: "at least 60 % of decoding and encoding",
			got: percent(got), missedBy: 0.6 / got, why: whyReview,
		})
	}
	s.tables = append(s.tables, t)
	s.remarks = append(s.remarks, reviewRemark)
	return s, nil
}

// load reads the snapshot of the large cluster, or its manifests.
func (b *bench) load(l fileCluster) (*source.State, error) {
	file, err := l.file(b.cache)
	if err != nil {
		return nil, err
	}
	snapshot := filepath.Join(b.cache, "snapshot")
	if _, err := b.program("snapshot", "--from", file, "-o", snapshot); err != nil {
		return nil, err
	}
	return source.LoadFiles(b.ctx, []string{snapshot}, source.FileOptions{})
}

// alone puts reviews to the Node authorizer, as review does by default.
func alone(node *nodeauthz.Authorizer) review.Authorize {
	return func(_ context.Context, req *access.Request) review.AccessAnswer {
		answer := node.Decide(req)
		if answer.Decision == verdict.Allow {
			return review.AccessAnswer{Decision: answer.Decision}
		}
		return review.AccessAnswer{Decision: answer.Decision, Reason: node.Message(req, answer)}
	}
}

// documents makes reviews about the pods of the cluster.
func (l fileCluster) documents(n, allowedOfTen int) ([]byte, error) {
	var text bytes.Buffer
	encoder := stdjson.NewEncoder(&text)
	for i := range n {
		node := i * 7919 % l.nodes
		app := l.appOf(node, i%l.replicas())
		asking := node
		if i%10 >= allowedOfTen {
			asking = (node + l.nodes/2) % l.nodes
		}
		a := &authorizationv1.ResourceAttributes{Verb: "get", Version: "v1", Namespace: appNamespace(app)}
		switch i / 10 % 4 {
		case 0:
			a.Resource, a.Name = "secrets", appName(app)+"-credentials"
		case 1:
			a.Resource, a.Name = "configmaps", appName(app)+"-config"
		case 2:
			a.Resource, a.Name = "pods", l.replicaPod(node, i%l.replicas())
		case 3:
			a.Verb, a.Resource, a.Subresource, a.Name = "create", "serviceaccounts", "token", appName(app)
		}
		document := &authorizationv1.SubjectAccessReview{}
		document.APIVersion, document.Kind = "authorization.k8s.io/v1", "SubjectAccessReview"
		user := kubelet(asking)
		document.Spec = authorizationv1.SubjectAccessReviewSpec{ResourceAttributes: a, User: user.GetName(), Groups: user.GetGroups()}
		if err := encoder.Encode(document); err != nil {
			return nil, fmt.Errorf("encoding a document: %w", err)
		}
	}
	return text.Bytes(), nil
}

// throughput is documents a second.
type throughput struct{ review, floor, standard []float64 }

// share is the throughput of review as a share of the faster of the two loops.
func (t throughput) share() float64 {
	var shares []float64
	for i := range t.review {
		shares = append(shares, t.review[i]/max(t.floor[i], t.standard[i]))
	}
	return median(shares)
}

func (t *table) addReview(what string, got throughput) {
	t.add(what, percent(got.share()), thousands(median(got.review)), thousands(median(got.floor)), thousands(median(got.standard)))
}

func (b *bench) oneCore(authorize review.Authorize, documents []byte) (throughput, error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	return b.throughput(authorize, documents, processTime)
}

func (b *bench) allCores(authorize review.Authorize, documents []byte) (throughput, error) {
	begin := time.Now()
	return b.throughput(authorize, documents, func() time.Duration { return time.Since(begin) })
}

// throughput alternates between review and the loops.
func (b *bench) throughput(authorize review.Authorize, documents []byte, clock func() time.Duration) (throughput, error) {
	n := float64(bytes.Count(documents, []byte{'\n'}))
	var t throughput
	for i := range b.fillRounds {
		b.log("reviews: round %d", i+1)
		for _, m := range []struct {
			into *[]float64
			run  func() error
		}{
			{&t.review, func() error {
				_, err := review.Stream(b.ctx, review.Evaluators{Authorize: authorize}, bytes.NewReader(documents), io.Discard)
				return err
			}},
			{&t.floor, func() error { return eachDocument(documents, recode) }},
			{&t.standard, func() error { return eachDocument(documents, recodeStandard) }},
		} {
			settle()
			begin := clock()
			if err := m.run(); err != nil {
				return t, err
			}
			*m.into = append(*m.into, n/(clock()-begin).Seconds())
		}
	}
	return t, b.ctx.Err()
}

// eachDocument calls f for every line, on all cores, each of which has a part.
func eachDocument(documents []byte, f func(line []byte, into *authorizationv1.SubjectAccessReview, out *bytes.Buffer) error) error {
	var group sync.WaitGroup
	workers := runtime.GOMAXPROCS(0)
	errs := make([]error, workers)
	for w := range workers {
		part := documents
		if cut := lineEnd(documents, len(documents)/(workers-w)); w < workers-1 {
			part, documents = documents[:cut], documents[cut:]
		}
		group.Go(func() {
			var document authorizationv1.SubjectAccessReview
			var out bytes.Buffer
			for line := range bytes.Lines(part) {
				document = authorizationv1.SubjectAccessReview{}
				if errs[w] = f(line, &document, &out); errs[w] != nil {
					return
				}
				if out.Len() > 64<<10 {
					out.Reset()
				}
			}
		})
	}
	group.Wait()
	for _, err := range errs {
		if err != nil {
			return fmt.Errorf("decoding and encoding: %w", err)
		}
	}
	return nil
}

// lineEnd is the end of the line at a position.
func lineEnd(text []byte, at int) int {
	if n := bytes.IndexByte(text[min(at, len(text)):], '\n'); n >= 0 {
		return at + n + 1
	}
	return len(text)
}

func recode(line []byte, into *authorizationv1.SubjectAccessReview, out *bytes.Buffer) error {
	if err := json.Unmarshal(line, into); err != nil {
		return err
	}
	return json.MarshalWrite(out, into)
}

func recodeStandard(line []byte, into *authorizationv1.SubjectAccessReview, out *bytes.Buffer) error {
	if err := stdjson.Unmarshal(line, into); err != nil {
		return err
	}
	return stdjson.NewEncoder(out).Encode(into)
}
