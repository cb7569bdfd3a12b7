# One Larder stack from the release in release/. README.md has the limits of this way.

terraform {
  required_version = ">= 1.7"

  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 5.0"
    }
  }
}

variable "stack" {
  description = "The name of the stack. Names of its resources begin with it."
  type        = string
  default     = "larder-prod"

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{0,23}$", var.stack))
    error_message = "stack must have up to 24 lower-case letters, digits and hyphens."
  }
}

variable "code_bucket" {
  description = "Your bucket for the code of releases, in the region of the stack. It should keep versions."
  type        = string
}

variable "code_prefix" {
  description = "What the keys of the code begin with."
  type        = string
  default     = "larder/"
}

variable "role_arn" {
  description = "A service role for CloudFormation. By default, it uses your credentials."
  type        = string
  default     = null
}

variable "tags" {
  description = "Tags of the stack and of all its resources."
  type        = map(string)
  default     = {}
}

locals {
  release  = "${path.module}/release"
  template = "${local.release}/larder.template.json"
  template_key = join("", [
    var.code_prefix, "larder.template-", substr(filesha256(local.template), 0, 16), ".json"
  ])
}

data "aws_s3_bucket" "code" {
  bucket = var.code_bucket
}

# Archives and template are named by their content. What an upgrade no longer needs is deleted last, because a rollback
# reads it.
resource "aws_s3_object" "archive" {
  for_each = fileset(local.release, "*.zip")

  bucket = data.aws_s3_bucket.code.id
  key    = "${var.code_prefix}${each.value}"
  source = "${local.release}/${each.value}"

  lifecycle {
    create_before_destroy = true
  }
}

resource "aws_s3_object" "template" {
  bucket       = data.aws_s3_bucket.code.id
  key          = local.template_key
  source       = local.template
  content_type = "application/json"

  lifecycle {
    create_before_destroy = true
  }
}

resource "aws_cloudformation_stack" "larder" {
  name         = var.stack
  template_url = "https://${data.aws_s3_bucket.code.bucket_regional_domain_name}/${aws_s3_object.template.key}"
  parameters   = merge(local.parameters, { CodeBucket = var.code_bucket, CodePrefix = var.code_prefix })
  capabilities = ["CAPABILITY_IAM"]
  iam_role_arn = var.role_arn
  tags         = var.tags

  depends_on = [aws_s3_object.archive]

  timeouts {
    create = "60m"
    update = "60m"
    delete = "60m"
  }
}
