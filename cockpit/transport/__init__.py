"""How bytes travel: SSH, this machine, a recording. The only importer of asyncssh beside demo/."""
