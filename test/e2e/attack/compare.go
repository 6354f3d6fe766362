package attack

import (
	"context"
	"fmt"
	"net/http"

	"golang.org/x/sync/errgroup"
)

// senders is the number of requests in flight. Their order does not matter, because they
// have no effects.
const senders = 4

// Compare sends every request to both clusters and returns their answers, without the
// reasons. A write that both refused as a dry run is sent again without dry run, and
// those answers count. A request that one of them did not answer is an error.
func Compare(ctx context.Context, inTree, ours *Sender) ([]Report, error) {
	var reports []Report
	sending, ctx := errgroup.WithContext(ctx)
	sending.SetLimit(senders)
	n := 0
	for _, section := range Sections() {
		rows := make([]Row, len(section.Requests))
		for i, request := range section.Requests {
			n++
			id := fmt.Sprintf("attack-%04d", n)
			sending.Go(func() (err error) {
				rows[i], err = compare(ctx, inTree, ours, request, id)
				return err
			})
		}
		reports = append(reports, Report{Section: section, Rows: rows})
	}
	return reports, sending.Wait()
}

func compare(ctx context.Context, inTree, ours *Sender, request Request, id string) (Row, error) {
	row := Row{Request: request, ID: id}
	var err error
	if row.InTree, err = inTree.Rehearse(ctx, request, id); err != nil {
		return row, fmt.Errorf("in-tree: %w", err)
	}
	if row.Ours, err = ours.Rehearse(ctx, request, id); err != nil {
		return row, fmt.Errorf("ours: %w", err)
	}
	if request.writes() && !row.InTree.Allowed() && !row.Ours.Allowed() {
		return forGood(ctx, row, inTree, ours)
	}
	return row, nil
}

// forGood fails if the answer to the real request differs from that to its dry run.
func forGood(ctx context.Context, row Row, inTree, ours *Sender) (Row, error) {
	for _, side := range []struct {
		name   string
		sender *Sender
		answer *Answer
	}{{"in-tree", inTree, &row.InTree}, {"ours", ours, &row.Ours}} {
		real, err := side.sender.Send(ctx, row.Request, row.ID)
		if err != nil {
			return row, fmt.Errorf("%s: %w", side.name, err)
		}
		if real.Status != side.answer.Status {
			return row, fmt.Errorf("%s: %s %s (%s) is answered with %d, but with %d as a dry run: %s",
				side.name, row.Method, row.Path, row.Attack, real.Status, side.answer.Status, real.Message)
		}
		*side.answer = real
	}
	return row, nil
}

func (r Request) writes() bool { return r.Method != http.MethodGet && r.Method != http.MethodOptions }
