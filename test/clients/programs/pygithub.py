"""Reads and writes what a bot reads and writes, and says what it saw."""
import json
import sys

from github import Github

url, token, name, number = sys.argv[1:]
api = Github(base_url=url, login_or_token=token, per_page=50)
repo = api.get_repo(name)
pull = repo.get_pull(int(number))
commits = list(pull.get_commits())
issue = repo.create_issue("By PyGithub", body="made", labels=[repo.get_labels()[0]])
issue.create_comment("said by PyGithub")
issue.edit(state="closed")
commits[-1].create_status("success", context="pygithub", description="done")
head = repo.get_commit(pull.head.sha)
seen = {
    "user": api.get_user().login,
    "issues": len(list(repo.get_issues(state="open"))),
    "found": api.search_issues("repo:%s is:pr is:open" % name).totalCount,
    "commits": [one.sha for one in commits],
    "files": [one.filename for one in pull.get_files()],
    "reviews": len(list(pull.get_reviews())),
    "runs": sorted(one.name for one in head.get_check_runs()),
    "status": [one.context for one in head.get_combined_status().statuses],
    "releases": [one.tag_name for one in repo.get_releases()],
    "branches": sorted(one.name for one in repo.get_branches()),
    "readme": repo.get_contents("README.md").decoded_content.decode(),
    "closed": repo.get_issue(issue.number).state,
    "comments": [one.body for one in issue.get_comments()],
    "made": issue.number,
}
print(json.dumps(seen))
