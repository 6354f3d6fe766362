package instances

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/smithy-go"
)

// directory is EC2 as it is asked about instances.
type directory struct {
	api EC2API
	*requests
}

func newDirectory(o Options) *directory { return &directory{o.EC2, newRequests(serviceEC2, o)} }

// describe returns those of some instances that EC2 knows.
func (d *directory) describe(ctx context.Context, ids []string) (map[string]record, error) {
	if len(ids) == 1 {
		return d.one(ctx, ids[0])
	}
	// A filter leaves out what EC2 does not know. A list of ids would be refused for one
	// of them.
	found, err := d.pages(ctx, &ec2.DescribeInstancesInput{
		Filters: []types.Filter{{Name: aws.String("instance-id"), Values: ids}},
	})
	if err != nil {
		return nil, fmt.Errorf("asking EC2 about %d instances: %w", len(ids), err)
	}
	if len(found) > 0 {
		return found, nil
	}
	// No instance at all is also what an answer says that was cut off.
	found, err = d.one(ctx, ids[0])
	if err == nil && len(found) > 0 {
		err = fmt.Errorf("EC2 answered a request about %d instances with none of them, and knows %s", len(ids), ids[0])
	}
	return nil, err
}

// one asks about one instance. That EC2 does not know it is an error of EC2's own, so
// that it is told from an answer that was cut off.
func (d *directory) one(ctx context.Context, id string) (map[string]record, error) {
	found, err := d.pages(ctx, &ec2.DescribeInstancesInput{InstanceIds: []string{id}})
	switch {
	case unknownInstance(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("asking EC2 about instance %s: %w", id, err)
	case found[id] == (record{}):
		return nil, fmt.Errorf("EC2 answered a request about instance %s with %d others", id, len(found))
	}
	return found, nil
}

func (d *directory) pages(ctx context.Context, input *ec2.DescribeInstancesInput) (map[string]record, error) {
	pages := ec2.NewDescribeInstancesPaginator(d.api, input,
		func(o *ec2.DescribeInstancesPaginatorOptions) { o.StopOnDuplicateToken = true })
	found := map[string]record{}
	for pages.HasMorePages() {
		page, err := request(ctx, d.requests, unknownInstance, func() (*ec2.DescribeInstancesOutput, error) { return pages.NextPage(ctx) })
		if err != nil {
			return nil, err
		}
		for _, reservation := range page.Reservations {
			for n := range reservation.Instances {
				one := read(&reservation.Instances[n], aws.ToString(reservation.OwnerId))
				found[one.id] = one
			}
		}
	}
	return found, nil
}

func unknownInstance(err error) bool {
	var failure smithy.APIError
	if !errors.As(err, &failure) {
		return false
	}
	code := failure.ErrorCode()
	return code == "InvalidInstanceID.NotFound" || code == "InvalidInstanceID.Malformed"
}

func read(from *types.Instance, account string) record {
	r := record{
		id: aws.ToString(from.InstanceId), account: account,
		vpc: aws.ToString(from.VpcId), privateDNSName: strings.ToLower(aws.ToString(from.PrivateDnsName)),
	}
	if from.State != nil {
		r.running = from.State.Name == types.InstanceStateNameRunning || from.State.Name == types.InstanceStateNamePending
	}
	if from.IamInstanceProfile != nil {
		r.profile = profile{aws.ToString(from.IamInstanceProfile.Arn), aws.ToString(from.IamInstanceProfile.Id)}
	}
	return r
}
