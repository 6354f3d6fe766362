package fakeaws

import (
	"encoding/json"
	"encoding/xml"
	"net/http"
	"strings"
)

type getCallerIdentityResponse struct {
	XMLName xml.Name `xml:"https://sts.amazonaws.com/doc/2011-06-15/ GetCallerIdentityResponse" json:"-"`
	Result  struct {
		ARN     string `xml:"Arn" json:"Arn"`
		UserID  string `xml:"UserId" json:"UserId"`
		Account string `xml:"Account" json:"Account"`
	} `xml:"GetCallerIdentityResult" json:"GetCallerIdentityResult"`
	Metadata metadataElement `xml:"ResponseMetadata" json:"ResponseMetadata"`
}

type metadataElement struct {
	Request string `xml:"RequestId" json:"RequestId"`
}

type stsError struct {
	XMLName xml.Name `xml:"https://sts.amazonaws.com/doc/2011-06-15/ ErrorResponse" json:"-"`
	Error   struct {
		Type    string `xml:"Type" json:"Type"`
		Code    string `xml:"Code" json:"Code"`
		Message string `xml:"Message" json:"Message"`
	} `xml:"Error" json:"Error"`
	Request string `xml:"RequestId" json:"RequestId"`
}

// handleSTS answers requests to STS.
func (c *Cloud) handleSTS(w http.ResponseWriter, r *http.Request) {
	who, region, refused := c.authenticate(r, "sts")
	if refused == nil && !scopeFits(region, r.Host) {
		refused = &refusal{403, "SignatureDoesNotMatch", "Credential should be scoped to a valid region."}
	}
	if refused != nil {
		writeSTSError(w, r, *refused)
		return
	}
	if err := r.ParseForm(); err != nil || r.URL.Path != "/" || r.Form.Get("Version") != "2011-06-15" {
		writeSTSError(w, r, refusal{400, "InvalidAction", "Could not find version " + r.Form.Get("Version")})
		return
	}
	switch r.Form.Get("Action") {
	case "GetCallerIdentity":
		writeSTS(w, r, http.StatusOK, "GetCallerIdentityResponse", callerIdentity(who))
	case "AssumeRole":
		c.assumeRole(w, r, who)
	default:
		writeSTSError(w, r, refusal{400, "InvalidAction", "Could not find operation " + r.Form.Get("Action")})
	}
}

func callerIdentity(who principal) getCallerIdentityResponse {
	answer := getCallerIdentityResponse{Metadata: metadataElement{requestID()}}
	answer.Result.ARN, answer.Result.UserID, answer.Result.Account = who.arn, who.userID, who.account
	return answer
}

// scopeFits reports whether a host accepts signatures for a region. Hosts that are not
// AWS's accept any.
func scopeFits(region, host string) bool {
	labels := strings.Split(host, ".")
	if len(labels) < 3 || labels[0] != "sts" && labels[0] != "sts-fips" {
		return true
	}
	if labels[1] == "amazonaws" { // the global endpoint
		return region == "us-east-1"
	}
	return region == labels[1]
}

func writeSTSError(w http.ResponseWriter, r *http.Request, refused refusal) {
	answer := stsError{Request: requestID()}
	answer.Error.Type, answer.Error.Code, answer.Error.Message = "Sender", refused.code, refused.message
	if refused.status >= 500 {
		answer.Error.Type = "Receiver"
	}
	writeSTS(w, r, refused.status, "", answer)
}

func throttledSTS(w http.ResponseWriter, r *http.Request, kind FaultKind) {
	writeSTSError(w, r, map[FaultKind]refusal{
		Throttled: {400, "Throttling", "Rate exceeded"},
		Broken:    {500, "InternalFailure", "The request processing has failed because of an unknown error"},
		Forbidden: {403, "AccessDenied", "You are not authorized to perform this operation"},
	}[kind])
}

// writeSTS answers in XML, or in JSON on request. In JSON, the value gets the name as
// its key.
func writeSTS(w http.ResponseWriter, r *http.Request, status int, name string, value any) {
	if r.Header.Get("Accept") != "application/json" {
		writeXML(w, status, value)
		return
	}
	if name != "" {
		value = map[string]any{name: value}
	}
	body, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

func writeXML(w http.ResponseWriter, status int, value any) {
	body, err := xml.Marshal(value)
	if err != nil {
		panic(err)
	}
	w.Header().Set("Content-Type", "text/xml;charset=UTF-8")
	w.WriteHeader(status)
	_, _ = w.Write(append([]byte(xml.Header), body...))
}

func requestID() string {
	const hexDigits = "0123456789abcdef"
	return randomText(8, hexDigits) + "-" + randomText(4, hexDigits) + "-4" + randomText(3, hexDigits) +
		"-8" + randomText(3, hexDigits) + "-" + randomText(12, hexDigits)
}
