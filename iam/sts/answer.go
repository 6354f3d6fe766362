package sts

import (
	"encoding/xml"
	"errors"
	"fmt"
	"net/http"
	"regexp"

	"github.com/aws/aws-sdk-go-v2/aws/retry"

	"github.com/node-authorizer/node-authorizer/iam"
	"github.com/node-authorizer/node-authorizer/internal/strictjson"
)

// identity is who signed a request, as STS says
// (https://docs.aws.amazon.com/STS/latest/APIReference/API_GetCallerIdentity.html).
type identity struct {
	Account string `json:"Account"`
	ARN     string `json:"Arn"`
	UserID  string `json:"UserId"`
}

// isThrottling reports whether STS turns away, with whatever status, a request that is
// in order.
func isThrottling(code string) bool {
	_, throttling := retry.DefaultThrottleErrorCodes[code]
	return throttling
}

// readAnswer returns who signed a request. The error is a refusal or a throttling
// only if STS says so in a form of its own; of what it says, only the code is taken,
// because its message repeats the request.
func readAnswer(status int, body []byte) (*identity, error) {
	if len(body) > maxAnswer {
		return nil, fmt.Errorf("the answer has more than %d bytes", maxAnswer)
	}
	if status == http.StatusOK {
		return readIdentity(body)
	}
	code := readErrorCode(body)
	switch {
	case status == http.StatusTooManyRequests || isThrottling(code):
		return nil, &iam.Throttled{Service: service, Detail: fmt.Sprintf("it answered with status %d, %s", status, orNoCode(code))}
	case status >= 300 && status < 400:
		return nil, fmt.Errorf("it redirects, with status %d, and is not followed", status)
	case status < 400 || status >= 500 || status == http.StatusRequestTimeout || code == "":
		return nil, fmt.Errorf("it answered with status %d, %s", status, orNoCode(code))
	}
	return nil, iam.Refuse(iam.STSRefused, "STS does not take the token: %s", code)
}

func orNoCode(code string) string {
	if code == "" {
		return "without an error code of STS"
	}
	return code
}

var accountID = regexp.MustCompile(`^[0-9]{12}$`)

func readIdentity(body []byte) (*identity, error) {
	var document struct {
		Response struct {
			Result identity `json:"GetCallerIdentityResult"`
		} `json:"GetCallerIdentityResponse"`
	}
	if err := strictjson.Unmarshal(body, &document, strictjson.Options{AllowUnknown: true}); err != nil {
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
		return nil, iam.Refuse(iam.AccountMismatch, "STS says that %s is of account %s", who.ARN, who.Account)
	}
	return &who, nil
}

var errorCode = regexp.MustCompile(`^[A-Za-z0-9.]{1,64}$`)

// readErrorCode returns the code in an error of STS, in the JSON that was asked for or
// in XML; empty if it is none.
func readErrorCode(body []byte) string {
	var document struct {
		Error struct {
			Code string `json:"Code" xml:"Code"`
		} `json:"Error" xml:"Error"`
	}
	if strictjson.Unmarshal(body, &document, strictjson.Options{AllowUnknown: true}) != nil {
		if xml.Unmarshal(body, &document) != nil {
			return ""
		}
	}
	if !errorCode.MatchString(document.Error.Code) {
		return ""
	}
	return document.Error.Code
}
