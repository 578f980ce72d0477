// Reads and writes what a bot reads and writes, and says what it saw.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"sort"
	"strconv"
	"strings"

	"github.com/google/go-github/github"
)

type bearer struct{ token string }

func (b bearer) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	request.Header.Set("Authorization", "Bearer "+b.token)
	return http.DefaultTransport.RoundTrip(request)
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	ctx := context.Background()
	url, token, full := os.Args[1], os.Args[2], strings.Split(os.Args[3], "/")
	owner, name := full[0], full[1]
	number, err := strconv.Atoi(os.Args[4])
	check(err)
	api, err := github.NewEnterpriseClient(url, url, &http.Client{Transport: bearer{token}})
	check(err)
	page := github.ListOptions{PerPage: 100}
	user, _, err := api.Users.Get(ctx, "")
	check(err)
	pull, _, err := api.PullRequests.Get(ctx, owner, name, number)
	check(err)
	sha := pull.GetHead().GetSHA()
	labels, _, err := api.Issues.ListLabels(ctx, owner, name, &page)
	check(err)
	issue, _, err := api.Issues.Create(ctx, owner, name, &github.IssueRequest{
		Title: github.String("By go-github"), Body: github.String("made"), Labels: &[]string{labels[0].GetName()},
	})
	check(err)
	_, _, err = api.Issues.CreateComment(ctx, owner, name, issue.GetNumber(), &github.IssueComment{Body: github.String("said by go-github")})
	check(err)
	_, _, err = api.Issues.Edit(ctx, owner, name, issue.GetNumber(), &github.IssueRequest{State: github.String("closed")})
	check(err)
	_, _, err = api.Repositories.CreateStatus(ctx, owner, name, sha, &github.RepoStatus{
		State: github.String("success"), Context: github.String("go-github"), Description: github.String("done"),
	})
	check(err)
	open := 0
	options := &github.IssueListByRepoOptions{State: "open", ListOptions: page}
	for {
		issues, response, err := api.Issues.ListByRepo(ctx, owner, name, options)
		check(err)
		for _, one := range issues {
			if !one.IsPullRequest() {
				open++
			}
		}
		if response.NextPage == 0 {
			break
		}
		options.Page = response.NextPage
	}
	found, _, err := api.Search.Issues(ctx, "repo:"+os.Args[3]+" is:pr is:open", nil)
	check(err)
	commits, _, err := api.PullRequests.ListCommits(ctx, owner, name, number, &page)
	check(err)
	files, _, err := api.PullRequests.ListFiles(ctx, owner, name, number, &page)
	check(err)
	reviews, _, err := api.PullRequests.ListReviews(ctx, owner, name, number, &page)
	check(err)
	runs, _, err := api.Checks.ListCheckRunsForRef(ctx, owner, name, sha, &github.ListCheckRunsOptions{ListOptions: page})
	check(err)
	status, _, err := api.Repositories.GetCombinedStatus(ctx, owner, name, sha, &page)
	check(err)
	releases, _, err := api.Repositories.ListReleases(ctx, owner, name, &page)
	check(err)
	branches, _, err := api.Repositories.ListBranches(ctx, owner, name, &github.BranchListOptions{ListOptions: page})
	check(err)
	file, _, _, err := api.Repositories.GetContents(ctx, owner, name, "README.md", nil)
	check(err)
	readme, err := file.GetContent()
	check(err)
	closed, _, err := api.Issues.Get(ctx, owner, name, issue.GetNumber())
	check(err)
	comments, _, err := api.Issues.ListComments(ctx, owner, name, issue.GetNumber(), nil)
	check(err)

	seen := map[string]interface{}{
		"user": user.GetLogin(), "issues": open, "found": found.GetTotal(), "reviews": len(reviews),
		"readme": readme, "closed": closed.GetState(), "made": issue.GetNumber(),
	}
	lists := map[string][]string{"commits": {}, "files": {}, "runs": {}, "status": {}, "releases": {}, "branches": {}, "comments": {}}
	add := func(key string, value string) { lists[key] = append(lists[key], value) }
	for _, one := range commits {
		add("commits", one.GetSHA())
	}
	for _, one := range files {
		add("files", one.GetFilename())
	}
	for _, one := range runs.CheckRuns {
		add("runs", one.GetName())
	}
	for _, one := range status.Statuses {
		add("status", one.GetContext())
	}
	for _, one := range releases {
		add("releases", one.GetTagName())
	}
	for _, one := range branches {
		add("branches", one.GetName())
	}
	for _, one := range comments {
		add("comments", one.GetBody())
	}
	sort.Strings(lists["runs"])
	sort.Strings(lists["branches"])
	for key, list := range lists {
		seen[key] = list
	}
	check(json.NewEncoder(os.Stdout).Encode(seen))
}
