# Reads and writes what a bot reads and writes, and says what it saw.
require "json"
require "octokit"

url, token, name, number = ARGV
api = Octokit::Client.new(api_endpoint: url, access_token: token, per_page: 50, auto_paginate: true)
pull = api.pull_request(name, number)
issue = api.create_issue(name, "By octokit.rb", "made", labels: [api.labels(name).first.name])
api.add_comment(name, issue.number, "said by octokit.rb")
api.close_issue(name, issue.number)
api.create_status(name, pull.head.sha, "success", context: "octokit.rb", description: "done")
runs = api.check_runs_for_ref(name, pull.head.sha, accept: "application/vnd.github+json")
puts JSON.generate(
  user: api.user.login,
  issues: api.issues(name, state: "open").count { |one| one.pull_request.nil? },
  found: api.search_issues("repo:#{name} is:pr is:open").total_count,
  commits: api.pull_commits(name, number).map(&:sha),
  files: api.pull_files(name, number).map(&:filename),
  reviews: api.pull_request_reviews(name, number).size,
  runs: runs.check_runs.map(&:name).sort,
  status: api.combined_status(name, pull.head.sha).statuses.map(&:context),
  releases: api.releases(name).map(&:tag_name),
  branches: api.branches(name).map(&:name).sort,
  readme: api.contents(name, path: "README.md", accept: "application/vnd.github.raw"),
  closed: api.issue(name, issue.number).state,
  comments: api.issue_comments(name, issue.number).map(&:body),
  made: issue.number,
)
