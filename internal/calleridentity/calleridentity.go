// Package calleridentity asks STS who signed a request for GetCallerIdentity: it sends
// requests that others have signed, and reads the answers.
//
// Only an answer of STS, in STS's form, decides anything. Whatever else comes is an
// error. What was signed is as good as a password for some minutes, so that no error
// quotes it.
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

	"github.com/node-authorizer/node-authorizer/iam"
	"github.com/node-authorizer/node-authorizer/internal/strictjson"
)

// MaxAnswer is how much of an answer is read, in bytes. One has less than a kilobyte.
const MaxAnswer = 64 << 10

// Identity is who signed a request, as STS says. The account is the one in the ARN, and
// has 12 digits. None of them is empty.
type Identity struct {
	Account string `json:"Account"`
	ARN     string `json:"Arn"`
	UserID  string `json:"UserId"`
}

// Refused is the error of a request that STS does not take: its signature is wrong, or
// too old, or of credentials that STS does not know.
type Refused struct {
	// Code is STS's, letters, digits and dots: "ExpiredToken".
	Code string
}

// Error implements error.
func (r *Refused) Error() string { return "STS does not take the signed request: " + r.Code }

// Throttled is the error of a request that may be in order, and that STS turns away
// because there are too many.
type Throttled struct {
	Status int
	// Code is STS's; empty for none.
	Code string
}

// Error implements error.
func (t *Throttled) Error() string { return answered(t.Status, t.Code) }

// Mismatch is the error of an answer whose ARN is of another account than the answer
// says.
type Mismatch struct {
	ARN, Account string
}

// Error implements error.
func (m *Mismatch) Error() string {
	return fmt.Sprintf("STS says that %s is of account %s", m.ARN, m.Account)
}

// Send sends a signed request and returns the answer, up to one byte more than
// [MaxAnswer]. Redirects are answers like others: they are not followed. The header is
// what was signed beside the host; the answer is asked for in JSON.
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
		return resp.StatusCode, nil, fmt.Errorf("reading the answer: %w", withoutSecrets(err, target.RawQuery))
	}
	return resp.StatusCode, answer, nil
}

// withoutSecrets keeps an error if nothing of a request's query is in it.
func withoutSecrets(err error, rawQuery string) error {
	text := err.Error()
	for parameter := range strings.SplitSeq(rawQuery, "&") {
		_, encoded, _ := strings.Cut(parameter, "=")
		value, decodingErr := url.QueryUnescape(encoded)
		if decodingErr != nil || len(value) >= 16 && (strings.Contains(text, value) || strings.Contains(text, encoded)) {
			return errors.New("the connection failed, and why cannot be told without telling the signed request")
		}
	}
	return err
}

// Read returns who signed a request. The error is a [*Refused], a [*Throttled] or a
// [*Mismatch] only if STS says so in a form of its own; of what it says, only the code
// is taken, because its message repeats the request.
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
		return nil, fmt.Errorf("it redirects, with status %d, and is not followed", status)
	case status < 400 || status >= 500 || status == http.StatusRequestTimeout || code == "":
		return nil, errors.New(answered(status, code))
	}
	return nil, &Refused{code}
}

// answered says what came in place of an identity.
func answered(status int, code string) string {
	if code == "" {
		code = "without an error code of STS"
	}
	return fmt.Sprintf("it answered with status %d, %s", status, code)
}

// isThrottling reports whether STS turns away, with whatever status, a request that is
// in order.
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

// readErrorCode returns the code in an error of STS, in the JSON that was asked for or
// in XML; empty if it is none.
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
