package query

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/internal/cli/command"
	"github.com/node-authorizer/node-authorizer/internal/decision"
	"github.com/node-authorizer/node-authorizer/internal/review"
	"github.com/node-authorizer/node-authorizer/noderestriction"
	"github.com/node-authorizer/node-authorizer/verdict"
)

func NewReview(a *command.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "review [-f FILE]",
		Short: "Answer SubjectAccessReview and AdmissionReview documents, one JSON line each",
		Long: `Reads SubjectAccessReviews of authorization.k8s.io/v1 or v1beta1 and
AdmissionReviews of admission.k8s.io/v1 as JSON, one after the other and mixed as
they come, and writes the answers, one line each, in the same order: the
SubjectAccessReview with its status, or an AdmissionReview with the response.

Documents are read as the server reads them: fields as kube-apiserver does, a selector
that is not valid is left out (evaluationError), a field that is given twice is an
error. Resource names are taken as written.

SubjectAccessReviews are put to the Node authorizer alone: when it has no opinion,
the status says allowed: false and denied: false. With --authorization-config they
are put to the authorizers of that file, and its webhooks are called. A webhook that
cannot be called leaves the question open (evaluationError), with any failure
policy; a match condition that cannot be evaluated, and an answer that allows and
denies, are decided as kube-apiserver decides them.

AdmissionReviews are put to NodeRestriction. Some writes depend on the authorizers, such
as a request for a token for an audience that no pod uses: the command asks the Node
authorizer and RBAC, or the authorizers of --authorization-config.

NodeScopes and Quarantines of the state are asked first, as by a server that enforces
them; the extra values in a document say which node a token is bound to. With
--authorization-config they decide AdmissionReviews only.

A refusal that could rest on what --from lacks is marked: the SubjectAccessReview has
an evaluationError, and the message of the AdmissionReview says what is lacking.

A document that cannot be read ends the run.

Exit status: 0 all were allowed, 1 some were not, 2 a document could not be read, or
there was none.`,
		Example: `  node-authorizer review --from cluster.yaml -f reviews.json

  # As a filter
  produce-reviews | node-authorizer review --from snapshot.gz | jq -c '.status // .response'`,
	}
	state := command.AddState(a, cmd)
	state.AddBehaviour(cmd)
	state.AddAuthorization(cmd, "the Node authorizer alone")
	file := cmd.Flags().StringP("filename", "f", command.StdinName, "file with the documents, - for stdin")
	command.Must(cmd.MarkFlagFilename("filename"))
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if *file == command.StdinName && state.ReadsStdin() {
			return command.Usagef("--from - and the documents both want stdin: put one of them into a file")
		}
		documents, name, err := a.Open(*file)
		if err != nil {
			return fmt.Errorf("reading the documents: %w", err)
		}
		defer documents.Close()
		s, err := state.Load(cmd)
		if err != nil {
			return err
		}
		return answerDocuments(cmd.Context(), a, s, documents, name)
	}
	return cmd
}

// answerDocuments answers documents by the Node authorizer, or by the configured authorizers. A refusal by these has the
// reason of each, with the full message of the Node authorizer.
func answerDocuments(ctx context.Context, a *command.App, s *command.Session, documents io.Reader, name string) error {
	evaluators := review.Evaluators{
		Authorize: func(ctx context.Context, req *access.Request) review.AccessAnswer {
			if s.Configured != "" {
				return reviewed(s.Review(ctx, req))
			}
			opinion, err := s.AuthorizeNode(ctx, req)
			if opinion.Decision == verdict.Allow {
				opinion.Reason = ""
			}
			return reviewed(opinion, err)
		},
		Admit: func(ctx context.Context, req *noderestriction.Request) noderestriction.Answer {
			return admit(ctx, s, req)
		},
		Reads: s.Reads,
	}
	total, err := review.Stream(ctx, evaluators, documents, a.Out)
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
		a.Status = command.StatusDenied
	}
	return nil
}

// reviewed converts an opinion to the answer to a review: an error is never a decision.
func reviewed(opinion decision.Opinion, err error) review.AccessAnswer {
	answer := review.AccessAnswer{Decision: opinion.Decision, Reason: opinion.Reason, EvaluationError: opinion.EvaluationError}
	if opinion.Detail != nil {
		answer.Reason = opinion.Detail()
	}
	if err != nil {
		answer.Decision, answer.EvaluationError = verdict.NoOpinion, err.Error()
	}
	return answer
}
