import type { Release, ReleaseAsset } from "../world/records-code.ts";
import { simpleUser } from "./user.ts";
import { bodyFields, type Json, repositoryPage, repositoryUrl, time, timeOrNull, type View } from "./view.ts";

/** release. */
export function releaseView(view: View, release: Release): Json {
  const { repository, tagName } = release;
  const base = repositoryUrl(view, repository);
  const url = `${base}/releases/${release.id}`;
  const tag = encodeURIComponent(release.draft ? `untagged-${release.id}` : tagName);
  return {
    url,
    assets_url: `${url}/assets`,
    upload_url: `${url}/assets{?name,label}`,
    html_url: `${repositoryPage(view, repository)}/releases/tag/${tag}`,
    id: release.id,
    author: simpleUser(view, release.authorId),
    node_id: view.world.nodeId("Release", release, repository.id, view.nextIds),
    tag_name: tagName,
    target_commitish: release.targetCommitish,
    name: release.name,
    draft: release.draft,
    immutable: false,
    prerelease: release.prerelease,
    created_at: time(release.createdAt),
    updated_at: time(release.updatedAt),
    published_at: timeOrNull(release.publishedAt),
    assets: release.assets.map((asset) => assetView(view, release, asset)),
    tarball_url: release.draft ? null : `${base}/tarball/${tagName}`,
    zipball_url: release.draft ? null : `${base}/zipball/${tagName}`,
    ...bodyFields(view, release.body),
  };
}

/** release-asset. */
export function assetView(view: View, release: Release, asset: ReleaseAsset): Json {
  const { repository, tagName } = release;
  return {
    url: `${repositoryUrl(view, repository)}/releases/assets/${asset.id}`,
    id: asset.id,
    node_id: view.world.nodeId("ReleaseAsset", asset, repository.id, view.nextIds),
    name: asset.name,
    label: asset.label,
    uploader: simpleUser(view, asset.uploaderId),
    content_type: asset.contentType,
    state: "uploaded",
    size: asset.size,
    digest: null,
    download_count: asset.downloads,
    created_at: time(asset.createdAt),
    updated_at: time(asset.createdAt),
    browser_download_url: `${repositoryPage(view, repository)}/releases/download/${encodeURIComponent(tagName)}/${encodeURIComponent(asset.name)}`,
  };
}
