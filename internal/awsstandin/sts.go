package awsstandin

import (
	"encoding/xml"
	"net/http"
)

type getCallerIdentityResponse struct {
	XMLName xml.Name `xml:"https://sts.amazonaws.com/doc/2011-06-15/ GetCallerIdentityResponse"`
	ARN     string   `xml:"GetCallerIdentityResult>Arn"`
	UserID  string   `xml:"GetCallerIdentityResult>UserId"`
	Account string   `xml:"GetCallerIdentityResult>Account"`
	Request string   `xml:"ResponseMetadata>RequestId"`
}

type stsError struct {
	XMLName xml.Name `xml:"https://sts.amazonaws.com/doc/2011-06-15/ ErrorResponse"`
	Type    string   `xml:"Error>Type"`
	Code    string   `xml:"Error>Code"`
	Message string   `xml:"Error>Message"`
	Request string   `xml:"RequestId"`
}

// handleSTS answers GetCallerIdentity, to whoever signed the request.
func (c *Cloud) handleSTS(w http.ResponseWriter, r *http.Request) {
	who, _, refused := c.authenticate(r, "sts")
	if refused != nil {
		writeSTSError(w, *refused)
		return
	}
	if err := r.ParseForm(); err != nil || r.URL.Path != "/" ||
		r.Form.Get("Action") != "GetCallerIdentity" || r.Form.Get("Version") != "2011-06-15" {
		writeSTSError(w, refusal{400, "InvalidAction", "Could not find operation " + r.Form.Get("Action") + " for version " + r.Form.Get("Version")})
		return
	}
	writeXML(w, http.StatusOK, getCallerIdentityResponse{
		ARN: who.arn, UserID: who.userID, Account: who.account, Request: requestID(),
	})
}

func writeSTSError(w http.ResponseWriter, refused refusal) {
	kind := "Sender"
	if refused.status >= 500 {
		kind = "Receiver"
	}
	writeXML(w, refused.status, stsError{Type: kind, Code: refused.code, Message: refused.message, Request: requestID()})
}

func throttledSTS(w http.ResponseWriter, kind FaultKind) {
	writeSTSError(w, map[FaultKind]refusal{
		Throttled: {400, "Throttling", "Rate exceeded"},
		Broken:    {500, "InternalFailure", "The request processing has failed because of an unknown error"},
		Forbidden: {403, "AccessDenied", "You are not authorized to perform this operation"},
	}[kind])
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
