"""The messages and the service of ``quadriga.v1``, generated from ``extension.proto`` beside this."""
