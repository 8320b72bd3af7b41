#!/bin/sh
# Installs a browser through apt for the tests of the documentation site. Without apt, the right to
# use it, or such a package, it says so, and these tests are skipped.
set -eu
for name in chromium chromium-browser google-chrome google-chrome-stable headless_shell; do
  if "$name" --version >/dev/null 2>&1; then exit 0; fi
done
if [ "$(id -u)" = 0 ] && grep -qx 'ID=debian' /etc/os-release 2>/dev/null; then
  echo "installing a system package: chromium"
  export DEBIAN_FRONTEND=noninteractive
  install="apt-get install -y -qq --no-install-recommends chromium"
  timeout 120 apt-get update -qq && timeout 600 $install --download-only >/dev/null &&
    $install >/dev/null && exit 0
fi
echo "there is no browser: tests of the site that need one are skipped" >&2
