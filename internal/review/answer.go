package review

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/node-authorizer/node-authorizer/verdict"
)

// answerer answers documents of both kinds sequentially.
type answerer struct {
	evaluators Evaluators
	out        *bytes.Buffer
	encoder    *json.Encoder
	access     authorizationv1.SubjectAccessReview
}

func newAnswerer(evaluators Evaluators, out *bytes.Buffer) *answerer {
	a := &answerer{evaluators: evaluators, out: out, encoder: json.NewEncoder(out)}
	a.encoder.SetEscapeHTML(false)
	return a
}

const wantEither = wantAccessReview + " or " + wantAdmission

// answer writes the answer to a document within the limits. It reports whether the answer
// allows the request.
func (a *answerer) answer(ctx context.Context, document []byte) (bool, error) {
	first, second := a.answerAccess, a.answerAdmission
	if likelyAdmission(document) {
		first, second = second, first
	}
	allowed, err := first(ctx, document)
	if _, wrong := errors.AsType[*kindError](err); !wrong {
		return allowed, err
	}
	allowed, err = second(ctx, document)
	if wrong, ok := errors.AsType[*kindError](err); ok {
		return false, &kindError{wrong.header, wantEither}
	}
	return allowed, err
}

// likelyAdmission guesses the kind of a document, so that most documents are decoded only
// once: programs write kind and apiVersion first.
func likelyAdmission(document []byte) bool {
	const beginning = 128
	return bytes.Contains(document[:min(len(document), beginning)], []byte(admissionKind))
}

func (a *answerer) answerAccess(ctx context.Context, document []byte) (bool, error) {
	if err := Decode(document, &a.access); err != nil {
		return false, err
	}
	a.access.Status = Status(ctx, a.evaluators.Authorize, &a.access.Spec)
	if err := a.encoder.Encode(&a.access); err != nil {
		return false, fmt.Errorf("encoding the answer: %w", err)
	}
	return a.access.Status.Allowed, nil
}

func (a *answerer) answerAdmission(ctx context.Context, document []byte) (bool, error) {
	review, err := decodeAdmission(document, a.evaluators.Reads)
	if err != nil {
		return false, err
	}
	answer := a.evaluators.Admit(ctx, review.Request())
	a.out.Write(review.Respond(answer))
	a.out.WriteByte('\n')
	return answer.Decision == verdict.Allow, nil
}
