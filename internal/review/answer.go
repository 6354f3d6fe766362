package review

import (
	"bytes"
	"context"

	"github.com/node-authorizer/node-authorizer/internal/strictjson"
	"github.com/node-authorizer/node-authorizer/verdict"
)

const wantEither = accessReviewKind + " of " + accessReviewVersion + " or " + wantAdmission

// answer writes the answer to a document of either kind. It reports whether the answer
// allows the request.
func (e *Evaluators) answer(ctx context.Context, document []byte, out *bytes.Buffer) (allowed bool, err error) {
	header, err := readHeader(document)
	if err != nil {
		return false, strictjson.Explain(err)
	}
	var text []byte
	switch header.Kind {
	case accessReviewKind:
		text, allowed, err = e.answerAccess(ctx, document)
	case admissionKind:
		text, allowed, err = e.answerAdmission(ctx, document)
	default:
		err = &kindError{header, wantEither}
	}
	if err != nil {
		return false, err
	}
	out.Write(text)
	out.WriteByte('\n')
	return allowed, nil
}

func (e *Evaluators) answerAccess(ctx context.Context, document []byte) (text []byte, allowed bool, err error) {
	review, err := DecodeAccessReview(document)
	if err != nil {
		return nil, false, err
	}
	return review.answerWith(ctx, e.Authorize, document)
}

func (e *Evaluators) answerAdmission(ctx context.Context, document []byte) (text []byte, allowed bool, err error) {
	review, err := DecodeAdmission(document, e.Reads)
	if err != nil {
		return nil, false, err
	}
	answer := e.Admit(ctx, review.Request())
	return review.Respond(answer), answer.Decision == verdict.Allow, nil
}
