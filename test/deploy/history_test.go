package deploy

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
)

// history has the samples that Prometheus has scraped: one a minute.
type history []storage.Series

// readHistory reads lines of the form "name{labels} 0 1x5 _x3": values, repeated values,
// and minutes without a scrape.
func readHistory(t *testing.T, text string) (h history) {
	t.Helper()
	for line := range strings.Lines(text) {
		metric, values, err := parser.NewParser(parser.Options{}).ParseSeriesDesc(strings.TrimSpace(line))
		if err != nil {
			t.Fatal(err)
		}
		var samples []chunks.Sample
		for minute, value := range values {
			if !value.Omitted {
				samples = append(samples, sample{(time.Duration(minute) * time.Minute).Milliseconds(), value.Value})
			}
		}
		h = append(h, storage.NewListSeries(metric, samples))
	}
	return h
}

// sample is a value at a time in milliseconds.
type sample struct {
	at    int64
	value float64
}

func (s sample) T() int64                      { return s.at }
func (s sample) ST() int64                     { return 0 }
func (s sample) F() float64                    { return s.value }
func (s sample) H() *histogram.Histogram       { return nil }
func (s sample) FH() *histogram.FloatHistogram { return nil }
func (s sample) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (s sample) Copy() chunks.Sample           { return s }

// Querier implements storage.Queryable.
func (h history) Querier(int64, int64) (storage.Querier, error) { return h, nil }

// Select implements storage.Querier.
func (h history) Select(_ context.Context, _ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	var selected seriesSet
	for _, series := range h {
		matches := true
		for _, m := range matchers {
			matches = matches && m.Matches(series.Labels().Get(m.Name))
		}
		if matches {
			selected.left = append(selected.left, series)
		}
	}
	return &selected
}

var errNoLabels = errors.New("queries do not ask for labels")

// LabelValues implements storage.Querier.
func (h history) LabelValues(context.Context, string, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, errNoLabels
}

// LabelNames implements storage.Querier.
func (h history) LabelNames(context.Context, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, errNoLabels
}

// Close implements storage.Querier.
func (h history) Close() error { return nil }

type seriesSet struct {
	left []storage.Series
	at   storage.Series
}

func (s *seriesSet) Next() bool {
	if len(s.left) == 0 {
		return false
	}
	s.at, s.left = s.left[0], s.left[1:]
	return true
}

func (s *seriesSet) At() storage.Series                { return s.at }
func (s *seriesSet) Err() error                        { return nil }
func (s *seriesSet) Warnings() annotations.Annotations { return nil }
