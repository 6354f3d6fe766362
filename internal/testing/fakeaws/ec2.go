package fakeaws

import (
	"encoding/xml"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

type ec2Error struct {
	XMLName xml.Name `xml:"Response"`
	Code    string   `xml:"Errors>Error>Code"`
	Message string   `xml:"Errors>Error>Message"`
	Request string   `xml:"RequestID"`
}

// handleEC2 answers DescribeInstances with the instances of the caller's account in the
// region.
func (c *Cloud) handleEC2(w http.ResponseWriter, r *http.Request) {
	who, region, refused := c.authenticate(r, "ec2")
	if refused != nil {
		refused.status, refused.code = http.StatusUnauthorized, "AuthFailure"
		writeEC2Error(w, *refused)
		return
	}
	if err := r.ParseForm(); err != nil || r.Form.Get("Action") != "DescribeInstances" {
		writeEC2Error(w, refusal{400, "InvalidAction", "The action " + r.Form.Get("Action") + " is not valid for this web service."})
		return
	}
	answer, refused := c.describe(r.Form, who.account, region)
	if refused != nil {
		writeEC2Error(w, *refused)
		return
	}
	writeXML(w, http.StatusOK, answer)
}

// pageToken is the prefix of page tokens. The number of the page follows.
const pageToken = "fake-page-"

// describe returns one page. Instances are ordered by their ids.
func (c *Cloud) describe(form url.Values, account, region string) (*describeInstancesResponse, *refusal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	page, refused := pageOf(form.Get("NextToken"))
	if refused != nil {
		return nil, refused
	}
	found, refused := c.find(form, account, region)
	if refused != nil {
		return nil, refused
	}
	answer := &describeInstancesResponse{Request: requestID()}
	if page < c.emptyPages {
		answer.NextToken = pageToken + strconv.Itoa(page+1)
		return answer, nil
	}
	if form.Get("MaxResults") != "" {
		return nil, &refusal{400, "InvalidParameterCombination", "this fake pages no lists"}
	}
	for _, instance := range found {
		answer.Reservations = append(answer.Reservations, reservation(instance))
	}
	return answer, nil
}

func pageOf(token string) (int, *refusal) {
	if token == "" {
		return 0, nil
	}
	page, err := strconv.Atoi(strings.TrimPrefix(token, pageToken))
	if err != nil {
		return 0, &refusal{400, "InvalidNextToken", "The token is not valid"}
	}
	return page, nil
}

// find returns the instances of a query: by id, by a filter of ids, or all. Like EC2, it
// refuses the whole query for one unknown id, and omits unknown ids in a filter.
func (c *Cloud) find(form url.Values, account, region string) ([]*Instance, *refusal) {
	visible := func(i *Instance) bool { return i != nil && i.Account == account && i.Region == region }
	var found []*Instance
	if ids := list(form, "InstanceId"); len(ids) > 0 {
		for _, id := range ids {
			if !instanceID.MatchString(id) {
				return nil, &refusal{400, "InvalidInstanceID.Malformed", fmt.Sprintf("Invalid id: %q", id)}
			}
			if !visible(c.instances[id]) {
				return nil, &refusal{400, "InvalidInstanceID.NotFound", fmt.Sprintf("The instance ID '%s' does not exist", id)}
			}
			found = append(found, c.instances[id])
		}
		return found, nil
	}
	only, refused := filteredIDs(form)
	if refused != nil {
		return nil, refused
	}
	for _, id := range slices.Sorted(maps.Keys(c.instances)) {
		if visible(c.instances[id]) && (only == nil || slices.Contains(only, id)) {
			found = append(found, c.instances[id])
		}
	}
	return found, nil
}

// filteredIDs returns the values of the filter instance-id, or nil without a filter.
func filteredIDs(form url.Values) ([]string, *refusal) {
	if !form.Has("Filter.1.Name") {
		return nil, nil
	}
	ids := list(form, "Filter.1.Value")
	if form.Get("Filter.1.Name") != "instance-id" || form.Has("Filter.2.Name") {
		return nil, &refusal{400, "InvalidParameterValue", "this fake filters by instance-id only"}
	}
	if len(ids) == 0 || len(ids) > 200 {
		return nil, &refusal{400, "FilterLimitExceeded", "The maximum number of filter values is 200"}
	}
	return ids, nil
}

var instanceID = regexp.MustCompile(`^i-([0-9a-f]{8}|[0-9a-f]{17})$`)

// list returns the parameters NAME.1, NAME.2, … of a query.
func list(form url.Values, name string) []string {
	var values []string
	for n := 1; form.Has(name + "." + strconv.Itoa(n)); n++ {
		values = append(values, form.Get(name+"."+strconv.Itoa(n)))
	}
	return values
}

func writeEC2Error(w http.ResponseWriter, refused refusal) {
	writeXML(w, refused.status, ec2Error{Code: refused.code, Message: refused.message, Request: requestID()})
}

func throttledEC2(w http.ResponseWriter, _ *http.Request, kind FaultKind) {
	writeEC2Error(w, map[FaultKind]refusal{
		Throttled: {503, "RequestLimitExceeded", "Request limit exceeded."},
		Broken:    {500, "InternalError", "An internal error has occurred"},
		Forbidden: {403, "UnauthorizedOperation", "You are not authorized to perform this operation."},
	}[kind])
}
