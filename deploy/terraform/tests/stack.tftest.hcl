# The stack and the uploads, with a mock of AWS's provider: `terraform init`, then `terraform test`. Needs release/.

mock_provider "aws" {
  mock_data "aws_s3_bucket" {
    defaults = {
      id                          = "acme-code"
      bucket_regional_domain_name = "acme-code.s3.eu-central-1.amazonaws.com"
    }
  }

  mock_resource "aws_cloudformation_stack" {
    defaults = {
      outputs = {
        ApiUrl  = "https://api.example"
        Version = "1.2.3"
      }
    }
  }
}

variables {
  code_bucket = "acme-code"
}

run "the_stack_gets_the_release_and_the_options" {
  command = apply

  variables {
    parameters = { RetentionDays = 60, ProtectData = false }
    tags       = { team = "build" }
  }

  assert {
    condition     = length(aws_s3_object.archive) == 3
    error_message = "The release has three archives."
  }

  assert {
    condition = alltrue([
      for name, one in aws_s3_object.archive : one.key == "larder/larder-prod/${name}" && one.bucket == "acme-code"
    ])
    error_message = "The archives are not where CodePrefix says."
  }

  assert {
    condition = (
      aws_cloudformation_stack.larder.template_url
      == join("", [
        "https://acme-code.s3.eu-central-1.amazonaws.com/", aws_s3_object.template.key,
        "?versionId=", urlencode(aws_s3_object.template.version_id)
      ])
    )
    error_message = "The template is not the uploaded version."
  }

  assert {
    condition = alltrue([
      for name, one in aws_s3_object.archive : contains(values(aws_cloudformation_stack.larder.parameters), one.version_id)
    ])
    error_message = "The stack does not get the version of every archive."
  }

  assert {
    condition = (
      aws_cloudformation_stack.larder.parameters["RetentionDays"] == "60"
      && aws_cloudformation_stack.larder.parameters["ProtectData"] == "false"
    )
    error_message = "The options do not reach the stack."
  }

  assert {
    condition     = output.api_url == "https://api.example" && output.version == "1.2.3"
    error_message = "The outputs are not those of the stack."
  }
}

run "an_option_that_does_not_exist_is_refused" {
  command = plan

  variables {
    parameters = { RetentionDay = 60 }
  }

  expect_failures = [aws_cloudformation_stack.larder]
}

run "a_name_that_is_too_long_is_refused" {
  command = plan

  variables {
    stack = "larder-with-a-name-of-more-than-24"
  }

  expect_failures = [var.stack]
}
