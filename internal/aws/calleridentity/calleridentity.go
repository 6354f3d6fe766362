// Package calleridentity sends signed GetCallerIdentity requests to STS and reads the
// answers, which identify the signer.
//
// Only an answer of STS, in STS's form, is a decision. Anything else is an error. A signed
// request is a credential for some minutes, so that no error quotes it.
//
// Source: https://docs.aws.amazon.com/STS/latest/APIReference/API_GetCallerIdentity.html
package calleridentity

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws/retry"

	"github.com/node-authorizer/node-authorizer/internal/aws/iam"
	"github.com/node-authorizer/node-authorizer/internal/strictjson"
)

// MaxAnswer is the maximum size of an answer in bytes. Real ones are below a kilobyte.
const MaxAnswer = 64 << 10

// Identity is the signer of a request, as STS returns it. The account equals the account in
// the ARN and has 12 digits. No field is empty.
type Identity struct {
	Account string `json:"Account"`
	ARN     string `json:"Arn"`
	UserID  string `json:"UserId"`
}

// Refused is the error of a request that STS refuses: its signature is wrong or expired, or
// its credentials are unknown.
type Refused struct {
	// Code is STS's, letters, digits and dots: "ExpiredToken".
	Code string
}

// Error implements error.
func (r *Refused) Error() string { return "STS rejects the signed request: " + r.Code }

// Throttled is the error of a request that STS throttled. The request may be valid.
type Throttled struct {
	Status int
	// Code is STS's error code, if any.
	Code string
}

// Error implements error.
func (t *Throttled) Error() string { return answered(t.Status, t.Code) }

// Mismatch is the error of an answer whose account differs from the account in its ARN.
type Mismatch struct {
	ARN, Account string
}

// Error implements error.
func (m *Mismatch) Error() string {
	return fmt.Sprintf("STS returned %s with the account %s", m.ARN, m.Account)
}

// Send sends a signed request and returns the answer, up to one byte more than
// [MaxAnswer]. It does not follow redirects. The header has the signed headers other than
// the host. It requests the answer as JSON.
func Send(ctx context.Context, transport http.RoundTripper, target *url.URL, header http.Header) (status int, answer []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return 0, nil, errors.New("the request cannot be made")
	}
	req.Header = header.Clone()
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "node-authorizer")
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return 0, nil, withoutSecrets(err, target.RawQuery)
	}
	defer resp.Body.Close()
	answer, err = io.ReadAll(io.LimitReader(resp.Body, MaxAnswer+1))
	if err != nil {
		return resp.StatusCode, nil, fmt.Errorf("read the answer: %w", withoutSecrets(err, target.RawQuery))
	}
	return resp.StatusCode, answer, nil
}

// withoutSecrets returns an error if it contains no parameter of the query, and otherwise
// one without details.
func withoutSecrets(err error, rawQuery string) error {
	text := err.Error()
	for parameter := range strings.SplitSeq(rawQuery, "&") {
		_, encoded, _ := strings.Cut(parameter, "=")
		value, decodingErr := url.QueryUnescape(encoded)
		if decodingErr != nil || len(value) >= 16 && (strings.Contains(text, value) || strings.Contains(text, encoded)) {
			return errors.New("the connection failed; the cause is not shown because it contains the signed request")
		}
	}
	return err
}

// Read returns the signer of a request. The error is a [*Refused], a [*Throttled] or a
// [*Mismatch] only for an answer in STS's form. Errors contain only STS's code, because
// STS's message repeats the request.
func Read(status int, answer []byte) (*Identity, error) {
	if len(answer) > MaxAnswer {
		return nil, fmt.Errorf("the answer has more than %d bytes", MaxAnswer)
	}
	if status == http.StatusOK {
		return readIdentity(answer)
	}
	code := readErrorCode(answer)
	switch {
	case status == http.StatusTooManyRequests || isThrottling(code):
		return nil, &Throttled{status, code}
	case status >= 300 && status < 400:
		return nil, fmt.Errorf("it redirects, with status %d, which is not followed", status)
	case status < 400 || status >= 500 || status == http.StatusRequestTimeout || code == "":
		return nil, errors.New(answered(status, code))
	}
	return nil, &Refused{code}
}

// answered describes an answer without an identity.
func answered(status int, code string) string {
	if code == "" {
		code = "without an error code of STS"
	}
	return fmt.Sprintf("it answered with status %d, %s", status, code)
}

// isThrottling reports whether an error code means throttling, with any status.
func isThrottling(code string) bool {
	_, throttling := retry.DefaultThrottleErrorCodes[code]
	return throttling
}

var accountID = regexp.MustCompile(`^[0-9]{12}$`)

func readIdentity(answer []byte) (*Identity, error) {
	var document struct {
		Response struct {
			Result Identity `json:"GetCallerIdentityResult"`
		} `json:"GetCallerIdentityResponse"`
	}
	if err := strictjson.Unmarshal(answer, &document, strictjson.Options{AllowUnknown: true}); err != nil {
		return nil, errors.New("the answer is not the JSON of GetCallerIdentity")
	}
	who := document.Response.Result
	if !accountID.MatchString(who.Account) || who.ARN == "" || who.UserID == "" {
		return nil, errors.New("the answer of GetCallerIdentity lacks an ARN, an account or a user id")
	}
	arn, err := iam.ParseARN(who.ARN)
	if err != nil {
		return nil, fmt.Errorf("the answer of GetCallerIdentity: %w", err)
	}
	if arn.Account != who.Account {
		return nil, &Mismatch{who.ARN, who.Account}
	}
	return &who, nil
}

var errorCode = regexp.MustCompile(`^[A-Za-z0-9.]{1,64}$`)

// readErrorCode returns the code in an error of STS, which is JSON or XML, or "" if there
// is none.
func readErrorCode(answer []byte) string {
	var document struct {
		Error struct {
			Code string `json:"Code" xml:"Code"`
		} `json:"Error" xml:"Error"`
	}
	if strictjson.Unmarshal(answer, &document, strictjson.Options{AllowUnknown: true}) != nil {
		if xml.Unmarshal(answer, &document) != nil {
			return ""
		}
	}
	if !errorCode.MatchString(document.Error.Code) {
		return ""
	}
	return document.Error.Code
}
