// Package junit has the part of JUnit's XML that build servers read.
//
// Source: https://github.com/testmoapp/junitxml
package junit

import "encoding/xml"

// Suites is a whole file.
type Suites struct {
	XMLName xml.Name `xml:"testsuites"`
	Suite   Suite
}

// Suite has the cases of one command.
type Suite struct {
	XMLName  xml.Name `xml:"testsuite"`
	Name     string   `xml:"name,attr"`
	Tests    int      `xml:"tests,attr"`
	Failures int      `xml:"failures,attr"`
	Errors   int      `xml:"errors,attr"`
	// Timestamp is the time in UTC when the command began, as in RFC 3339.
	Timestamp  string      `xml:"timestamp,attr,omitempty"`
	Properties *Properties `xml:"properties,omitempty"`
	Cases      []Case      `xml:"testcase"`
}

// Properties say how the cases were made.
type Properties struct {
	All []Property `xml:"property"`
}

// Property is a name and a value.
type Property struct {
	Name  string `xml:"name,attr"`
	Value string `xml:"value,attr"`
}

// Property adds a property, unless its value is empty.
func (s *Suite) Property(name, value string) {
	if value == "" {
		return
	}
	if s.Properties == nil {
		s.Properties = &Properties{}
	}
	s.Properties.All = append(s.Properties.All, Property{name, value})
}

// Case is passed if it has neither a failure nor an error.
type Case struct {
	Class string `xml:"classname,attr"`
	Name  string `xml:"name,attr"`
	File  string `xml:"file,attr,omitempty"`
	Line  int    `xml:"line,attr,omitempty"`
	// Failure has the findings. Error is the reason why the case could not be checked.
	Failure *Problem `xml:"failure,omitempty"`
	Error   *Problem `xml:"error,omitempty"`
	Out     string   `xml:"system-out,omitempty"`
}

// Problem is a failure or an error.
type Problem struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr"`
	Text    string `xml:",chardata"`
}

// Add adds a case, and counts it.
func (s *Suite) Add(c Case) {
	s.Tests++
	if c.Failure != nil {
		s.Failures++
	}
	if c.Error != nil {
		s.Errors++
	}
	s.Cases = append(s.Cases, c)
}
