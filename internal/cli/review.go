package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/node-authorizer/node-authorizer/graph"
	"github.com/node-authorizer/node-authorizer/internal/review"
	"github.com/node-authorizer/node-authorizer/nodeauthz"
	"github.com/node-authorizer/node-authorizer/verdict"
)

const stdinName = "-"

func newReview(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "review [-f FILE]",
		Short: "Answer SubjectAccessReview and AdmissionReview documents, one JSON line each",
		Long: `Reads SubjectAccessReviews of authorization.k8s.io/v1 and AdmissionReviews of
admission.k8s.io/v1 as JSON, one after the other and mixed as they come, and
writes the answers, one line each, in the same order: the SubjectAccessReview with
its status, or an AdmissionReview with the response.

SubjectAccessReviews are put to the Node authorizer alone: when it has no opinion,
the status says allowed: false and denied: false. Selectors and fields are read as
kube-apiserver reads them; resource names are taken as written. With
--authorization-config they are put to the authorizers of that file, and its
webhooks are called. A webhook that cannot be called leaves the question open
(evaluationError), whatever its failure policy is; a match condition that cannot be
evaluated, and an answer that allows and denies, are decided as kube-apiserver
decides them.

AdmissionReviews are put to NodeRestriction. What only authorizers can say, such
as whether a node may request tokens for an audience that its pod does not use, it
asks the Node authorizer and RBAC, or the authorizers of --authorization-config.

A refusal that could rest on what --from lacks is marked: the SubjectAccessReview has
an evaluationError, and the message of the AdmissionReview says what is lacking.

A document that cannot be read ends the run. Exit status: 0 all were allowed,
1 some were not, 2 a document could not be read, or there was none.`,
		Example: `  node-authorizer review --from cluster.yaml -f reviews.json

  # As a filter
  produce-reviews | node-authorizer review --from snapshot.gz | jq -c '.status // .response'`,
		Args:              exactly(),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	state := addState(a, cmd)
	state.addBehaviour(cmd)
	state.addAuthorization(cmd, "the Node authorizer alone")
	file := cmd.Flags().StringP("filename", "f", stdinName, "file with the documents, - for stdin")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if *file == stdinName && state.readsStdin() {
			return usagef("--from - and the documents both want stdin: put one of them into a file")
		}
		documents, name, err := a.openDocuments(*file)
		if err != nil {
			return err
		}
		defer documents.Close()
		s, err := state.load(cmd)
		if err != nil {
			return err
		}
		return a.review(cmd.Context(), s, documents, name)
	}
	return cmd
}

func (f *stateFlags) readsStdin() bool {
	for _, path := range f.from {
		if path == stdinName {
			return true
		}
	}
	return false
}

// openDocuments is called before the state is read, so that a wrong file name
// is told at once.
func (a *app) openDocuments(path string) (io.ReadCloser, string, error) {
	if path == stdinName {
		return io.NopCloser(a.in), "stdin", nil
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, "", fmt.Errorf("reading the documents: %w; give a file, or - for stdin", err)
	}
	return file, path, nil
}

func (a *app) review(ctx context.Context, s *session, documents io.Reader, name string) error {
	restriction := s.restriction()
	authorize := s.nodeAlone()
	if s.configured != "" {
		authorize = s.chained()
	}
	total, err := review.Stream(ctx, review.Evaluators{
		Authorize: authorize, Admit: s.admit(restriction), Reads: restriction.Reads,
	}, documents, a.out)
	if err != nil {
		if document := new(review.DocumentError); errors.As(err, &document) {
			return fmt.Errorf("%s: %w", name, err)
		}
		return err
	}
	switch {
	case total.Documents == 0:
		return fmt.Errorf("%s has no document: nothing was reviewed", name)
	case total.Allowed < total.Documents:
		a.status = statusDenied
	}
	return nil
}

// nodeAlone puts reviews to the Node authorizer. A refusal says why; one that
// an unreadable resource, or what files lack, might turn also says that it was not
// decided.
func (s *session) nodeAlone() review.Evaluate {
	unread := s.unreadByKind()
	return func(_ context.Context, req *nodeauthz.Request) (review.Opinion, error) {
		answer := s.node.Decide(req)
		if answer.Decision == verdict.Allow || answer.Code == nodeauthz.NotANode {
			return review.Opinion{Decision: answer.Decision}, nil
		}
		opinion := review.Opinion{Decision: answer.Decision, Reason: s.node.Message(req, answer)}
		if answer.Code != nodeauthz.NoPathToObject || len(unread) == 0 && s.state.Complete() {
			return opinion, nil
		}
		kind, _ := nodeauthz.KindOf(req.Group, req.Resource)
		if err := unread[kind]; err != nil {
			return opinion, err
		}
		return opinion, s.lackError(req, true, false)
	}
}

// unreadByKind says, for the kinds about which answers may be incomplete, what
// could not be read.
func (s *session) unreadByKind() map[graph.Kind]error {
	unread := map[graph.Kind]error{}
	failed := map[schema.GroupResource]bool{}
	for _, m := range s.state.Missing() {
		failed[m.Resource] = true
	}
	for _, kind := range graph.Kinds() {
		var names []string
		for resource := range holders(kind) {
			if failed[resource] {
				names = append(names, resource.String())
			}
		}
		slices.Sort(names)
		if len(names) > 0 {
			unread[kind] = fmt.Errorf("could not read %s", strings.Join(names, ", "))
		}
	}
	return unread
}
